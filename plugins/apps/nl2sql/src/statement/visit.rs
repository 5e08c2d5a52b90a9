//! Visits the nodes of a syntax tree.
//!
//! sqlparser compiles its walk, which covers all statements, for each type of visitor. The component
//! has one such type, which calls a [`Visitor`] by dynamic dispatch.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    self, Expr, GroupByExpr, ObjectName, OrderBy, Query, Select, Statement, TableFactor, Visit,
};

/// Defines the functions of a visitor by their names and the nodes that they get.
macro_rules! visitor {
    ($($function:ident($node:ty);)*) => {
        /// Functions that [`walk`] calls before and after the children of a node. By default, they
        /// do nothing.
        pub(super) trait Visitor {
            $(fn $function(&mut self, _node: &$node) {})*
        }

        impl ast::Visitor for DynVisitor<'_> {
            type Break = Infallible;

            $(fn $function(&mut self, node: &$node) -> ControlFlow<Infallible> {
                self.0.$function(node);
                ControlFlow::Continue(())
            })*
        }
    };
}

visitor! {
    pre_visit_statement(Statement);
    pre_visit_query(Query);
    post_visit_query(Query);
    pre_visit_select(Select);
    post_visit_select(Select);
    pre_visit_relation(ObjectName);
    pre_visit_table_factor(TableFactor);
    pre_visit_group_by(GroupByExpr);
    pre_visit_order_by(OrderBy);
    post_visit_order_by(OrderBy);
    pre_visit_expr(Expr);
    post_visit_expr(Expr);
}

/// Visits a node and all nodes below it.
pub(super) fn walk(node: &impl Visit, visitor: &mut dyn Visitor) {
    let ControlFlow::Continue(()) = node.visit(&mut DynVisitor(visitor));
}

struct DynVisitor<'a>(&'a mut dyn Visitor);
