//! Executes statements that only read, through the database port and under the rule of the grant.
//! See [`crate::gate::transaction`] for transactions.

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::unwind::CallError;
use crate::hostcall::sql::{Dialect, Query, Rows, Statement, sql_rule};

impl Effect for Query {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Rows, CallError> {
        let rule = sql_rule(context.grants, context.caller, &self.0.database)?;
        let Statement { database, text, parameters } = &self.0;
        let (owner, limits) = (context.caller.owner, &context.grants.limits.sql);
        Ok(context.ports.sql.query(owner, database, rule, limits, text, parameters).await?)
    }
}

impl Effect for Dialect {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<String, CallError> {
        Ok(context.ports.sql.dialect(&self.database).await.map(str::to_owned)?)
    }
}
