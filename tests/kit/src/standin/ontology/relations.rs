//! Relations between classes.

/// A relation between classes.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) domain: &'static [&'static str],
    pub(super) range: &'static [&'static str],
    /// The condition that joins the rows. Only the details of the relation contain it.
    pub(super) join: &'static str,
}

pub(super) const PROPERTIES: &[Property] = &[
    Property {
        code: "customer_places_order",
        name: "客户下单",
        description: "客户的订单，从客户到订单",
        domain: &["customer"],
        range: &["order"],
        join: "customer.phone = order.customer_phone",
    },
    Property {
        code: "customer_signs_contract",
        name: "客户签约",
        description: "客户的合同，从客户到合同",
        domain: &["customer"],
        range: &["contract"],
        join: "customer.name = contract.customer_name",
    },
    Property {
        code: "customer_raises_ticket",
        name: "客户提单",
        description: "客户的工单，从客户到工单",
        domain: &["customer"],
        range: &["ticket"],
        join: "customer.phone = ticket.customer_phone",
    },
    Property {
        code: "employee_handles_ticket",
        name: "员工处理工单",
        description: "员工处理的工单，从员工到工单",
        domain: &["employee"],
        range: &["ticket"],
        join: "employee.name = ticket.assignee",
    },
];

/// Returns the relations of a class, as domain or range.
pub(super) fn of_class(code: &str) -> impl Iterator<Item = &'static Property> {
    PROPERTIES
        .iter()
        .filter(move |property| property.domain.contains(&code) || property.range.contains(&code))
}
