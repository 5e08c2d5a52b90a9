//! Visits the nodes of a syntax tree.
//!
//! sqlparser compiles its walk, which covers all statements, for each type of visitor. The component
//! has one such type, which calls a [`Visitor`] by dynamic dispatch.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    self, Expr, GroupByExpr, ObjectName, OrderBy, Query, Select, Statement, TableFactor, Visit,
};

/// Functions that [`walk`] calls before and after the children of a node. By default, they do
/// nothing.
pub(super) trait Visitor {
    fn pre_visit_statement(&mut self, _statement: &Statement) {}

    fn pre_visit_query(&mut self, _query: &Query) {}

    fn post_visit_query(&mut self, _query: &Query) {}

    fn pre_visit_select(&mut self, _select: &Select) {}

    fn post_visit_select(&mut self, _select: &Select) {}

    fn pre_visit_relation(&mut self, _relation: &ObjectName) {}

    fn pre_visit_table_factor(&mut self, _factor: &TableFactor) {}

    fn pre_visit_group_by(&mut self, _group_by: &GroupByExpr) {}

    fn pre_visit_order_by(&mut self, _order_by: &OrderBy) {}

    fn post_visit_order_by(&mut self, _order_by: &OrderBy) {}

    fn pre_visit_expr(&mut self, _expression: &Expr) {}

    fn post_visit_expr(&mut self, _expression: &Expr) {}
}

/// Visits a node and all nodes below it.
pub(super) fn walk(node: &impl Visit, visitor: &mut dyn Visitor) {
    let ControlFlow::Continue(()) = node.visit(&mut DynVisitor(visitor));
}

struct DynVisitor<'a>(&'a mut dyn Visitor);

impl ast::Visitor for DynVisitor<'_> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Infallible> {
        self.0.pre_visit_statement(statement);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        self.0.pre_visit_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        self.0.post_visit_query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.0.pre_visit_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        self.0.post_visit_select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Infallible> {
        self.0.pre_visit_relation(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Infallible> {
        self.0.pre_visit_table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_group_by(&mut self, group_by: &GroupByExpr) -> ControlFlow<Infallible> {
        self.0.pre_visit_group_by(group_by);
        ControlFlow::Continue(())
    }

    fn pre_visit_order_by(&mut self, order_by: &OrderBy) -> ControlFlow<Infallible> {
        self.0.pre_visit_order_by(order_by);
        ControlFlow::Continue(())
    }

    fn post_visit_order_by(&mut self, order_by: &OrderBy) -> ControlFlow<Infallible> {
        self.0.post_visit_order_by(order_by);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        self.0.pre_visit_expr(expression);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        self.0.post_visit_expr(expression);
        ControlFlow::Continue(())
    }
}
