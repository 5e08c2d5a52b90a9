//! Denied calls: what is missing, and where to add it.

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, PluginName};

use crate::grant::{GrantSides, Grants, RequestPlace};
use crate::ports::caller::Caller;

/// The side on which a permission is missing for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingSide {
    /// The permission is requested, but not granted.
    Grant,
    /// The permission is granted, but not requested.
    Request,
    /// The permission is neither requested nor granted.
    Both,
}

impl Grants {
    /// Returns the side on which a permission is missing for a denied call. `is_requested` and
    /// `is_granted` return true if the permissions of their side are sufficient for the call. If
    /// the sides are unknown, the grant counts as missing.
    pub fn missing_side(
        &self,
        is_requested: impl FnOnce(&Grants) -> bool,
        is_granted: impl FnOnce(&Grants) -> bool,
    ) -> MissingSide {
        let Some(sides) = &self.sides else { return MissingSide::Grant };
        let Some((_, needs)) = &sides.request else { return MissingSide::Grant };
        let Some(granted) = &sides.granted else { return MissingSide::Request };
        match (is_requested(needs), is_granted(granted)) {
            (true, _) => MissingSide::Grant,
            (false, true) => MissingSide::Request,
            (false, false) => MissingSide::Both,
        }
    }

    /// Returns a change of the files on the sides that lack a permission. `change` is the change of
    /// one file, such as "add `llm = [\"chat\"]`".
    pub fn remedy(&self, caller: &Caller, change: &str, missing: MissingSide) -> String {
        let change = self.change_in_files(&caller.app, &caller.plugin, change, missing);
        match (missing, self.request_place()) {
            (MissingSide::Request, Some(_)) => format!("{change}, which does not request it"),
            _ => change,
        }
    }

    /// Returns the same as [`remedy`](Self::remedy) without the reason, for a permission of which
    /// the plugin requests a part.
    pub fn change_in_files(
        &self,
        app: &AppName,
        plugin: &PluginName,
        change: &str,
        missing: MissingSide,
    ) -> String {
        let table = self.place_of_grant(app, plugin);
        match (missing, self.request_place()) {
            (MissingSide::Grant, _) | (_, None) => format!("{change} {table}"),
            (MissingSide::Request, Some(place)) => format!("{change} {place}"),
            (MissingSide::Both, Some(place)) => format!("{change} both {place} and {table}"),
        }
    }

    /// Returns how to raise a limit of a plugin, such as "raise `limits.cpu` under `[needs]` in
    /// app.toml". `limit` is the name of the limit in the table `limits`.
    ///
    /// The grant sets the limits. A plugin to which the operator grants what it requests has none,
    /// and a new table would take its permissions away, so the request sets its limits.
    pub fn raise_limit(&self, app: &AppName, plugin: &PluginName, limit: &str) -> String {
        let deciding = self.missing_side(|_| true, |_| false);
        self.change_in_files(app, plugin, &format!("raise `limits.{limit}`"), deciding)
    }

    fn request_place(&self) -> Option<&RequestPlace> {
        let (place, _) = self.sides.as_ref()?.request.as_ref()?;
        Some(place)
    }

    /// Returns the places in which a permission of a plugin has to be, without saying whether it is
    /// there.
    pub fn places(&self, app: &AppName, plugin: &PluginName) -> String {
        let table = self.place_of_grant(app, plugin);
        match self.sides.as_deref() {
            Some(GrantSides { request: Some((place, _)), granted: Some(_) }) => {
                format!("both {place} and {table}")
            }
            Some(GrantSides { request: Some((place, _)), granted: None }) => place.to_string(),
            _ => table,
        }
    }

    fn place_of_grant(&self, app: &AppName, plugin: &PluginName) -> String {
        let key = self.key_of(app, plugin);
        format!("under `[grants.{key}]` in wattle.toml")
    }

    /// Returns the failure of a call that the grants do not allow. `what` is what the plugin may
    /// not do, `change` is the change of one file that allows the call, and `allows` returns true
    /// for permissions that are sufficient.
    pub(crate) fn denial(
        &self,
        caller: &Caller,
        what: &str,
        change: &str,
        allows: impl Fn(&Grants) -> bool,
    ) -> Failure {
        let remedy = self.remedy(caller, change, self.missing_side(&allows, &allows));
        Failure::new(code::DENIED, format!("plugin `{}` {what}; {remedy}", caller.plugin))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::caller_id::CallerId;

    fn routes(names: &[&str]) -> Grants {
        let llm = names.iter().map(|&name| name.to_owned()).collect();
        Grants { llm, ..Grants::default() }
    }

    fn caller() -> Caller {
        Caller {
            app: "shop".parse().unwrap(),
            plugin: "desk".parse().unwrap(),
            tenant: None,
            owner: CallerId::default(),
        }
    }

    /// Returns what to do about a denied call of the route `chat`.
    fn remedy(request: Option<(RequestPlace, Grants)>, granted: Option<Grants>) -> String {
        let sides = Some(Arc::new(GrantSides { request, granted }));
        let grants = Grants { sides, ..Grants::default() };
        let allows = |grants: &Grants| grants.llm.contains("chat");
        let failure = grants.denial(&caller(), "may not chat", "add `chat`", allows);
        failure.message.strip_prefix("plugin `desk` may not chat; add `chat` ").unwrap().to_owned()
    }

    const TABLE: &str = "under `[grants.\"shop/desk\"]` in wattle.toml";

    #[test]
    fn a_denial_names_the_side_on_which_the_permission_is_missing() {
        let app = |names: &[&str]| Some((RequestPlace::App, routes(names)));
        assert_eq!(remedy(app(&["chat"]), Some(routes(&[]))), TABLE);
        let request = "under `[needs]` in app.toml, which does not request it";
        assert_eq!(remedy(app(&["vision"]), Some(routes(&["chat"]))), request);
        // A further table would take the other permissions from an app that gets what it requests.
        assert_eq!(remedy(app(&[]), None), request);
        let both = format!("both under `[needs]` in app.toml and {TABLE}");
        assert_eq!(remedy(app(&[]), Some(routes(&["vision"]))), both);
        assert_eq!(remedy(None, Some(routes(&[]))), TABLE);
    }

    #[test]
    fn the_places_of_a_permission_do_not_depend_on_what_is_there() {
        let places = |request: Option<RequestPlace>, granted: Option<Grants>| {
            let request = request.map(|place| (place, routes(&["chat"])));
            let sides = Some(Arc::new(GrantSides { request, granted }));
            let Caller { app, plugin, .. } = caller();
            Grants { sides, ..Grants::default() }.places(&app, &plugin)
        };
        let (app, chat) = (Some(RequestPlace::App), Some(routes(&["chat"])));
        let request = "under `[needs]` in app.toml";
        assert_eq!(places(app.clone(), chat.clone()), format!("both {request} and {TABLE}"));
        assert_eq!(places(app, None), request);
        assert_eq!(places(None, chat), TABLE);
        let Caller { app, plugin, .. } = caller();
        assert_eq!(Grants::default().places(&app, &plugin), TABLE);
    }

    #[test]
    fn a_limit_is_raised_on_the_side_that_sets_it() {
        let raise = |request: Option<RequestPlace>, granted: Option<Grants>| {
            let request = request.map(|place| (place, Grants::default()));
            let sides = Some(Arc::new(GrantSides { request, granted }));
            let Caller { app, plugin, .. } = caller();
            Grants { sides, ..Grants::default() }.raise_limit(&app, &plugin, "cpu")
        };
        let in_table = format!("raise `limits.cpu` {TABLE}");
        assert_eq!(raise(Some(RequestPlace::App), Some(Grants::default())), in_table);
        assert_eq!(raise(None, Some(Grants::default())), in_table);
        // A new table would take the permissions from an app that gets what it requests.
        let in_request = "raise `limits.cpu` under `[needs]` in app.toml";
        assert_eq!(raise(Some(RequestPlace::App), None), in_request);
        let Caller { app, plugin, .. } = caller();
        assert_eq!(Grants::default().raise_limit(&app, &plugin, "cpu"), in_table);
    }

    #[test]
    fn a_denial_names_the_place_of_the_request() {
        let at = |place| remedy(Some((place, routes(&[]))), Some(routes(&["chat"])));
        assert_eq!(
            at(RequestPlace::AppForPlugin("std".parse().unwrap())),
            "under `[needs.plugins.std]` in app.toml, which does not request it"
        );
        let own = "in the plugin's own manifest, which does not request it";
        assert_eq!(at(RequestPlace::Component), own);
    }
}
