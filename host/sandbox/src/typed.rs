//! Typed components: components without an interface of the contract, whose exported functions are
//! tools.
//!
//! The types of a function define the arguments and the output of its tool. A typed component needs
//! no SDK, and does not describe itself: none of its code runs when it is loaded. [`describe`]
//! reads the types that the engine found when it compiled the component. The component is not
//! decoded a second time: the library that decodes WIT recurses without end on some bytes, and
//! rejects some documentation.
//!
//! # Layout
//!
//! * `wit_type`: types of values with a JSON form; `by_name`: their cases; `reader`: the types of a
//!   component.
//! * `schema`: JSON Schema of types; `docs`: documentation of interfaces.
//! * `to_val` and `from_val`: JSON to values and back; `value_error`: errors with the path of a
//!   value; `values_memory`: the memory of the values of a call.
//! * `export_name`: names of functions and tools.

mod by_name;
pub(crate) mod docs;
pub(crate) mod export_name;
pub(crate) mod from_val;
mod reader;
mod schema;
pub(crate) mod to_val;
pub(crate) mod value_error;
pub(crate) mod values_memory;
pub(crate) mod wit_type;

use std::collections::BTreeMap;

use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Type};
use wattle_graph::schema::Schema;
use wattle_run::ports::sandbox::{RefusedFunction, ToolHints, ToolInfo};

use crate::load::description::{MAX_ITEMS, Schemas};
use crate::load::rejection::{Rejection, too_large};
use crate::load::text::sanitize;
use crate::typed::docs::{DocsIndex, DocsOfTypes, PackageDocs};
use crate::typed::export_name::{FunctionName, is_candidate, short_name};
use crate::typed::reader::{MAX_FUNCTION_TYPES, TypeReader};
use crate::typed::value_error::quoted;
use crate::typed::wit_type::WitType;

/// Maximum number of types, fields and cases of all functions together, of all documented types
/// together, and of all other types with a name. Also the maximum number of names that are searched
/// for documented types. The host keeps the types of functions in memory as long as the plugin is
/// loaded.
const MAX_TYPES: usize = 50_000;

/// Maximum length of a function's type in the description of its tool, in characters. The name of
/// the function replaces a longer type, from which a model would learn less than from the schema.
const MAX_SIGNATURE_CHARS: usize = 500;

/// Maximum length of the name of a refused function, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Maximum number of refused functions in the message about a component without tools.
const MAX_REFUSED_SHOWN: usize = 3;

/// A function that is a tool.
pub(crate) struct TypedFunction {
    /// Name of the tool.
    pub(crate) tool: String,
    pub(crate) index: ComponentExportIndex,
    pub(crate) params: Vec<(String, WitType)>,
    pub(crate) result: Option<WitType>,
}

/// The functions of a component.
#[derive(Default)]
pub(crate) struct TypedExports {
    pub(crate) functions: Vec<TypedFunction>,
    /// The descriptions of the functions, in the same order.
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) refused: Vec<RefusedFunction>,
}

/// Finds the functions of a component that can be tools, and describes them.
pub(crate) fn describe(
    component: &Component,
    docs: Option<&PackageDocs>,
) -> Result<TypedExports, Rejection> {
    let functions = exported_functions(component)?;
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for tool in functions.iter().filter_map(|function| function.name().tool().ok()) {
        *names.entry(tool).or_default() += 1;
    }
    let docs = docs.map(|docs| {
        let docs = DocsIndex::new(docs);
        let types = docs_of_types(component, &docs);
        (docs, types)
    });
    let (mut exports, mut schemas, mut types) = (TypedExports::default(), Schemas::new(), 0);
    for function in &functions {
        let mut reader = TypeReader::new(MAX_FUNCTION_TYPES);
        let found = function.read(&mut reader, &names);
        types += reader.count();
        if types > MAX_TYPES {
            return Err(too_large("types of exported functions", types as u64, MAX_TYPES as u64));
        }
        let described = found.and_then(|found| {
            let info = function.info(&found, docs.as_ref())?;
            Ok((found, info))
        });
        match described {
            Ok((found, mut info)) => {
                info.arguments_schema = schemas.keep(info.arguments_schema)?;
                exports.functions.push(found);
                exports.tools.push(info);
            }
            Err(reason) => {
                let name = sanitize(&function.name().to_string(), MAX_NAME_CHARS);
                exports.refused.push(RefusedFunction { function: name, reason });
            }
        }
    }
    if exports.functions.is_empty() { Err(without_tools(&exports.refused)) } else { Ok(exports) }
}

/// An exported function.
struct ExportedFunction {
    interface: Option<String>,
    function: String,
    ty: ComponentFunc,
    index: ComponentExportIndex,
}

/// Returns the functions of a component and of the instances that it exports.
///
/// # Errors
///
/// A rejection if there are more than [`MAX_ITEMS`] functions. The names of further functions are
/// not copied: a small file can have many functions in one instance with a long name.
fn exported_functions(component: &Component) -> Result<Vec<ExportedFunction>, Rejection> {
    let (ty, engine) = (component.component_type(), component.engine());
    let (mut found, mut count) = (Vec::new(), 0);
    let mut add = |interface: Option<&str>, function: &str, ty, index| {
        count += 1;
        if count <= MAX_ITEMS {
            let (interface, function) = (interface.map(str::to_owned), function.to_owned());
            found.push(ExportedFunction { interface, function, ty, index });
        }
    };
    for (export, item) in ty.exports(engine).filter(|(name, _)| is_candidate(name)) {
        let Some(index) = component.get_export_index(None, export) else { continue };
        match item.ty {
            ComponentItem::ComponentFunc(ty) => add(None, export, ty, index),
            ComponentItem::ComponentInstance(instance) => {
                for (function, item) in instance.exports(engine) {
                    let index = component.get_export_index(Some(&index), function);
                    let (Some(index), ComponentItem::ComponentFunc(ty)) = (index, item.ty) else {
                        continue;
                    };
                    add(Some(export), function, ty, index);
                }
            }
            _ => {}
        }
    }
    if count > MAX_ITEMS {
        return Err(too_large("exported functions", count as u64, MAX_ITEMS as u64));
    }
    Ok(found)
}

impl ExportedFunction {
    fn name(&self) -> FunctionName<'_> {
        FunctionName { interface: self.interface.as_deref(), function: &self.function }
    }

    /// Reads the types of the function. `names` has the number of functions for each tool name.
    ///
    /// # Errors
    ///
    /// The reason why the function cannot be a tool.
    fn read(
        &self,
        reader: &mut TypeReader,
        names: &BTreeMap<String, usize>,
    ) -> Result<TypedFunction, String> {
        let mut params = Vec::new();
        for (name, ty) in self.ty.params() {
            let param =
                reader.name(name).and_then(|name| reader.read(&ty).map(|read| (name, read)));
            let place = |reason: String| format!("its parameter {} {reason}", quoted(name));
            params.push(param.map_err(place)?);
        }
        let result = self.ty.results().next().map(|ty| reader.read(&ty)).transpose();
        let result = result.map_err(|reason| format!("its result {reason}"))?;
        let tool = self.name().tool()?;
        if names.get(&tool).is_some_and(|functions| *functions > 1) {
            return Err(format!("another function has the same tool name `{tool}`"));
        }
        Ok(TypedFunction { tool, index: self.index, params, result })
    }

    fn info(
        &self,
        found: &TypedFunction,
        docs: Option<&(DocsIndex<'_>, DocsOfInterfaces<'_>)>,
    ) -> Result<ToolInfo, String> {
        let none = DocsOfTypes::default();
        let own = docs.and_then(|(_, types)| types.by_interface.get(&self.interface));
        let all = docs.map_or(&none, |(_, types)| &types.all);
        let arguments_schema = schema::of_params(&found.params, own.unwrap_or(&none), all);
        Schema::compile(&arguments_schema)
            .map_err(|error| format!("the JSON Schema of its parameters is refused: {error}"))?;
        let text = docs.and_then(|(docs, _)| {
            docs.of_function(self.interface.as_deref().map(short_name), &self.function)
        });
        let text = text.filter(|text| !text.is_empty());
        Ok(ToolInfo {
            name: found.tool.clone(),
            description: text.map_or_else(|| self.signature(found), str::to_owned),
            arguments_schema,
            // The conversion `to_val` also checks the arguments, and its errors name the exact
            // place of a fault.
            accepts_invalid: true,
            hints: ToolHints::default(),
            reference: None,
            unavailable: None,
        })
    }

    /// Returns the type of the function as WIT, for a function without documentation.
    fn signature(&self, found: &TypedFunction) -> String {
        let param = |(name, ty): &(String, WitType)| format!("{name}: {ty}");
        let params: Vec<String> = found.params.iter().map(param).collect();
        let result = found.result.as_ref().map(|ty| format!(" -> {ty}")).unwrap_or_default();
        let kind = if self.ty.async_() { "async func" } else { "func" };
        let signature = format!("{}: {kind}({}){result}", self.function, params.join(", "));
        if signature.chars().count() > MAX_SIGNATURE_CHARS {
            return format!("`{}`", self.name());
        }
        match &self.interface {
            Some(interface) => {
                format!("`{signature}` of `{}`", export_name::without_version(interface))
            }
            None => format!("`{signature}`"),
        }
    }
}

/// The documentation of types.
#[derive(Default)]
struct DocsOfInterfaces<'d> {
    /// The documentation by the interface that names the types; `None` for the component itself.
    by_interface: BTreeMap<Option<String>, DocsOfTypes<'d>>,
    /// The documentation in all interfaces.
    all: DocsOfTypes<'d>,
}

/// Finds the documentation of types. Types after the first [`MAX_TYPES`] names have no
/// documentation.
fn docs_of_types<'d>(component: &Component, docs: &DocsIndex<'d>) -> DocsOfInterfaces<'d> {
    let (ty, engine) = (component.component_type(), component.engine());
    let DocsOfInterfaces { mut by_interface, mut all } = DocsOfInterfaces::default();
    let mut documented = TypeReader::new(MAX_TYPES);
    // The types without documentation leave the number of types with documentation as it is.
    let mut undocumented = TypeReader::new(MAX_TYPES);
    let mut add = |own: &mut DocsOfTypes<'d>, interface: Option<&str>, name: &str, ty: &Type| {
        // The engine resolves `type price = u32` to `u32`, but the documentation of `price` is not
        // that of `u32`.
        let is_distinct =
            matches!(ty, Type::Record(_) | Type::Variant(_) | Type::Enum(_) | Type::Flags(_));
        if !is_distinct {
            return;
        }
        match docs.of_type(interface, name) {
            Some(text) => {
                if let Ok(read) = documented.read(ty) {
                    all.insert(read.clone(), text);
                    own.insert(read, text);
                }
            }
            None => {
                if let Ok(read) = undocumented.read(ty) {
                    own.insert_undocumented(read);
                }
            }
        }
    };
    let mut left = MAX_TYPES;
    // The types that the component itself names, outside of interfaces, are among its imports.
    for (name, item) in ty.imports(engine).chain(ty.exports(engine)).take(MAX_TYPES) {
        match item.ty {
            ComponentItem::Type(ty) => {
                add(by_interface.entry(None).or_default(), None, name, &ty);
            }
            ComponentItem::ComponentInstance(instance) if is_candidate(name) => {
                let own = by_interface.entry(Some(name.to_owned())).or_default();
                for (type_name, item) in instance.exports(engine).take(left) {
                    left -= 1;
                    if let ComponentItem::Type(ty) = item.ty {
                        add(own, Some(short_name(name)), type_name, &ty);
                    }
                }
            }
            _ => {}
        }
    }
    DocsOfInterfaces { by_interface, all }
}

/// Returns the rejection of a component none of whose functions is a tool.
fn without_tools(refused: &[RefusedFunction]) -> Rejection {
    let reason = |refused: &RefusedFunction| format!("`{}`: {}", refused.function, refused.reason);
    let reasons: Vec<String> = refused.iter().take(MAX_REFUSED_SHOWN).map(reason).collect();
    let found = if reasons.is_empty() {
        "it exports no function".to_owned()
    } else {
        format!("none of its functions can be a tool: {}", reasons.join("; "))
    };
    Rejection::new(
        "missing-export",
        &format!("it is not a plugin: {found}"),
        "export a function without resources, streams and futures in its types, which becomes a \
         tool, or export `node`, `tool`, `reducer` or `web` of `wattle:plugin@0.1`",
    )
}
