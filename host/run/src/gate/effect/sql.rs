//! Runs statements that read on the database port, under the rule of the grant. See
//! [`crate::gate::transaction`] for transactions.

use crate::gate::effect::{Effect, Site};
use crate::gate::unwind::Stop;
use crate::hostcall::sql::{Dialect, Query, Rows, Statement, rule};

impl Effect for Query {
    async fn perform(&self, site: &Site<'_>) -> Result<Rows, Stop> {
        let rule = rule(site.grants, site.caller, &self.0.database)?;
        let Statement { database, text, parameters } = &self.0;
        let limits = &site.grants.limits.sql;
        Ok(site.ports.sql.query(database, rule, limits, text, parameters).await?)
    }
}

impl Effect for Dialect {
    async fn perform(&self, site: &Site<'_>) -> Result<String, Stop> {
        Ok(site.ports.sql.dialect(&self.database).await.map(str::to_owned)?)
    }
}
