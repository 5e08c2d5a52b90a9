//! Reads the structure of a component without compiling it.

use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentInstance, ComponentType, ComponentTypeDeclaration,
    ComponentTypeRef, Instance, InstanceTypeDeclaration, Parser, Payload, TypeBounds,
};
use wattle_run::limit;

use crate::engine::Abi;
use crate::load::rejection::{Rejection, invalid, too_large};
use crate::typed::docs::{self, PackageDocs};

/// Maximum nesting of components, in levels. A component of an encoder has two levels, and a
/// composed component has one or two more.
const MAX_NESTING: u64 = 5;

/// Maximum number of instances of nested components. Together with [`MAX_NESTING`], this limit
/// bounds how far a small file can expand.
const MAX_COMPONENT_INSTANCES: u64 = 64;

/// Name of the custom section with the manifest of a plugin, which lists the needs of the plugin.
const MANIFEST_SECTION: &str = "wattle:manifest";

/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST_BYTES: usize = 64 << 10;

/// Imports and exports of a component, by name, their documentation, and the ABI of the component.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceNames {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// Documentation of interfaces, if the component has documentation that can be parsed.
    pub(crate) docs: Option<PackageDocs>,
    /// [`Abi::Asynchronous`] if any part of the component uses the asynchronous ABI or has the type
    /// of an `async` function.
    pub(crate) abi: Abi,
}

/// Reads the imports and exports of a component, and checks the limits of its structure.
pub(crate) fn inspect(component: &[u8]) -> Result<InterfaceNames, Rejection> {
    let mut names = InterfaceNames::default();
    let mut depth = 0;
    let (mut core_instances, mut component_instances) = (0, 0);
    let broken = |error: wasmparser::BinaryReaderError| invalid(&error.to_string());
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(broken)? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::InstanceSection(section) => {
                for instance in section {
                    let made = matches!(instance.map_err(broken)?, Instance::Instantiate { .. });
                    core_instances += u64::from(made);
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    let instance = instance.map_err(broken)?;
                    let made = matches!(instance, ComponentInstance::Instantiate { .. });
                    component_instances += u64::from(made);
                }
            }
            Payload::ComponentTypeSection(section) => {
                for ty in section {
                    if has_async_function(&ty.map_err(broken)?) {
                        names.abi = Abi::Asynchronous;
                    }
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    if is_async(&function.map_err(broken)?) {
                        names.abi = Abi::Asynchronous;
                    }
                }
            }
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.map_err(broken)?;
                    names.imports.extend(import_name(import.name.name, import.ty));
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    names.exports.push(export.map_err(broken)?.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) if depth == 1 && section.name() == docs::SECTION => {
                names.docs = names.docs.or_else(|| PackageDocs::parse(section.data()));
            }
            _ => {}
        }
        check_limit("levels of nested components", depth, MAX_NESTING)?;
        check_limit("core instances", core_instances, u64::from(limit::CORE_INSTANCES))?;
        check_limit("component instances", component_instances, MAX_COMPONENT_INSTANCES)?;
    }
    Ok(names)
}

/// Returns true if a type is or contains the type of an `async` function. The engine for the
/// synchronous ABI rejects such types, even if the function is lifted for synchronous calls.
fn has_async_function(ty: &ComponentType<'_>) -> bool {
    match ty {
        ComponentType::Func(function) => function.async_,
        ComponentType::Component(declarations) => declarations.iter().any(|declaration| {
            matches!(declaration, ComponentTypeDeclaration::Type(ty) if has_async_function(ty))
        }),
        ComponentType::Instance(declarations) => declarations.iter().any(|declaration| {
            matches!(declaration, InstanceTypeDeclaration::Type(ty) if has_async_function(ty))
        }),
        ComponentType::Defined(_) | ComponentType::Resource { .. } => false,
    }
}

/// Returns true if a function of the canonical ABI is part of the asynchronous ABI. Functions for
/// threads are not.
fn is_async(function: &CanonicalFunction) -> bool {
    match function {
        CanonicalFunction::Lift { options, .. } | CanonicalFunction::Lower { options, .. } => {
            options.contains(&CanonicalOption::Async)
        }
        CanonicalFunction::ResourceNew { .. }
        | CanonicalFunction::ResourceDrop { .. }
        | CanonicalFunction::ResourceRep { .. }
        | CanonicalFunction::ThreadSpawnRef { .. }
        | CanonicalFunction::ThreadSpawnIndirect { .. }
        | CanonicalFunction::ThreadAvailableParallelism => false,
        _ => true,
    }
}

fn check_limit(what: &str, found: u64, allowed: u64) -> Result<(), Rejection> {
    if found > allowed { Err(too_large(what, found, allowed)) } else { Ok(()) }
}

/// Returns the name of an import. The contract imports only interfaces, so the name of any other
/// import includes its kind. Returns `None` for a type that the component itself defines: the host
/// does not have to provide such a type.
fn import_name(name: &str, kind: ComponentTypeRef) -> Option<String> {
    Some(match kind {
        ComponentTypeRef::Instance(_) => name.to_owned(),
        ComponentTypeRef::Func(_) => format!("the function {name}"),
        ComponentTypeRef::Module(_) => format!("the module {name}"),
        ComponentTypeRef::Component(_) => format!("the component {name}"),
        ComponentTypeRef::Type(TypeBounds::Eq(_)) => return None,
        ComponentTypeRef::Type(TypeBounds::SubResource) => format!("the resource {name}"),
        ComponentTypeRef::Value(_) => format!("the value {name}"),
    })
}

/// Returns the manifest of a file, at any nesting level of the component.
pub(crate) fn manifest(bytes: &[u8]) -> Result<Option<String>, Rejection> {
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| invalid(&error.to_string()))?;
        let Payload::CustomSection(section) = payload else { continue };
        if section.name() != MANIFEST_SECTION {
            continue;
        }
        let data = section.data();
        check_limit("bytes of manifest", data.len() as u64, MAX_MANIFEST_BYTES as u64)?;
        let text = std::str::from_utf8(data).map_err(|error| {
            invalid(&format!("the custom section `{MANIFEST_SECTION}` is not text: {error}"))
        })?;
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}
