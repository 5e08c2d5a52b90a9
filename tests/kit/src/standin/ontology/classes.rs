//! The classes of the company and their attributes.

/// An attribute. Classes share attributes of the same meaning.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
}

/// A class of business objects.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Codes of attributes, with the field of the data for each.
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) capabilities: &'static [Capability],
}

/// An operation on a class.
#[derive(Debug)]
pub(super) struct Capability {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// `query` or `group-analysis`.
    pub(super) mode: &'static str,
    /// Instructions for the use of the operation. Only the details of the capability contain them.
    pub(super) guide: &'static str,
}

const fn attribute(code: &'static str, name: &'static str, description: &'static str) -> Attribute {
    Attribute { code, name, description }
}

const fn query(code: &'static str, name: &'static str, description: &'static str) -> Capability {
    Capability {
        code, name, description, mode: "query", guide: "按条件过滤，返回明细行"
    }
}

const fn count(code: &'static str, name: &'static str, description: &'static str) -> Capability {
    Capability {
        code, name, description, mode: "group-analysis", guide: "选择分组字段和指标"
    }
}

pub(super) const ATTRIBUTES: &[Attribute] = &[
    attribute("customer_no", "客户编号", "客户的唯一编号"),
    attribute("customer_name", "客户名称", "客户的姓名"),
    attribute("customer_phone", "客户电话", "客户的联系电话，即手机号"),
    attribute("customer_region", "客户区域", "客户所在的大区，例如华东、华南"),
    attribute("customer_level", "客户等级", "客户的等级：金牌、银牌、普通"),
    attribute("registered_on", "注册日期", "客户注册的日期"),
    attribute("order_no", "订单编号", "订单的唯一单号"),
    attribute("order_product", "商品名称", "订单中的商品"),
    attribute("order_amount", "订单金额", "订单的总金额，单位为元"),
    attribute("order_status", "订单状态", "订单的状态：待付款、已发货、已完成、已取消"),
    attribute("ordered_on", "下单日期", "下单的日期"),
    attribute("contract_no", "合同编号", "合同的唯一编号"),
    attribute("contract_amount", "合同金额", "合同的总金额，单位为元"),
    attribute("contract_status", "合同状态", "合同的状态：生效中、已到期、已终止"),
    attribute("signed_on", "签约日期", "合同签订的日期"),
    attribute("employee_no", "员工编号", "员工的工号"),
    attribute("employee_name", "员工姓名", "员工的姓名"),
    attribute("employee_phone", "员工电话", "员工的手机号"),
    attribute("department", "所属部门", "员工所在的部门：销售部、客服部、运维部、财务部"),
    attribute("device_no", "设备编号", "设备的唯一编号"),
    attribute("device_model", "设备型号", "设备的型号"),
    attribute("device_site", "设备站点", "设备安装的站点"),
    attribute("device_status", "设备状态", "设备的状态：在线、离线、故障"),
    attribute("ticket_no", "工单编号", "工单的唯一编号"),
    attribute("ticket_kind", "工单类型", "工单的类型：投诉、报修、咨询"),
    attribute("ticket_status", "工单状态", "工单的状态：处理中、已关闭"),
    attribute("supplier_name", "供应商名称", "供应商的名称"),
    attribute("supplier_city", "供应商城市", "供应商所在的城市"),
];

pub(super) const CLASSES: &[Class] = &[
    Class {
        code: "customer",
        name: "客户",
        description: "购买商品或签订合同的个人",
        fields: &[
            ("customer_no", "customer_no"),
            ("customer_name", "name"),
            ("customer_phone", "phone"),
            ("customer_region", "region"),
            ("customer_level", "level"),
            ("registered_on", "registered_on"),
        ],
        capabilities: &[
            query("customer_query", "查询客户", "按条件查询客户的明细"),
            count("customer_statistics", "统计客户", "按区域、等级等统计客户数量"),
        ],
    },
    Class {
        code: "order",
        name: "订单",
        description: "客户购买商品的订单",
        fields: &[
            ("order_no", "order_no"),
            ("customer_name", "customer_name"),
            ("customer_phone", "customer_phone"),
            ("customer_region", "region"),
            ("order_product", "product"),
            ("order_amount", "amount"),
            ("order_status", "status"),
            ("ordered_on", "ordered_on"),
        ],
        capabilities: &[
            query("order_query", "查询订单", "按条件查询订单的明细"),
            count("order_statistics", "统计订单", "按状态、商品等统计订单数量和金额"),
        ],
    },
    Class {
        code: "contract",
        name: "合同",
        description: "与客户签订的合同",
        fields: &[
            ("contract_no", "contract_no"),
            ("customer_name", "customer_name"),
            ("contract_amount", "amount"),
            ("contract_status", "status"),
            ("signed_on", "signed_on"),
        ],
        capabilities: &[
            query("contract_query", "查询合同", "按条件查询合同的明细"),
            count("contract_statistics", "统计合同", "按状态统计合同数量和金额"),
        ],
    },
    Class {
        code: "employee",
        name: "员工",
        description: "公司的员工",
        fields: &[
            ("employee_no", "employee_no"),
            ("employee_name", "name"),
            ("employee_phone", "phone"),
            ("department", "department"),
        ],
        capabilities: &[
            query("employee_query", "查询员工", "按条件查询员工的明细"),
            count("employee_statistics", "统计员工", "按部门统计员工数量"),
        ],
    },
    Class {
        code: "device",
        name: "设备",
        description: "安装在各站点的设备",
        fields: &[
            ("device_no", "device_no"),
            ("device_model", "model"),
            ("device_site", "site"),
            ("device_status", "status"),
        ],
        capabilities: &[
            query("device_query", "查询设备", "按条件查询设备的明细"),
            count("device_statistics", "统计设备", "按状态、型号统计设备数量"),
        ],
    },
    Class {
        code: "ticket",
        name: "工单",
        description: "客户的投诉、报修和咨询",
        fields: &[
            ("ticket_no", "ticket_no"),
            ("customer_name", "customer_name"),
            ("customer_phone", "customer_phone"),
            ("employee_name", "assignee"),
            ("ticket_kind", "kind"),
            ("ticket_status", "status"),
        ],
        capabilities: &[
            query("ticket_query", "查询工单", "按条件查询工单的明细"),
            count("ticket_statistics", "统计工单", "按类型、状态统计工单数量"),
        ],
    },
    // The graph has this class, but no operation uses it.
    Class {
        code: "supplier",
        name: "供应商",
        description: "提供商品的公司",
        fields: &[("supplier_name", "name"), ("supplier_city", "city")],
        capabilities: &[],
    },
];

/// Returns the class with a code.
pub(super) fn class(code: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|class| class.code == code)
}

/// Returns the attribute with a code.
pub(super) fn attribute_of(code: &str) -> Option<&'static Attribute> {
    ATTRIBUTES.iter().find(|attribute| attribute.code == code)
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, attribute_of};

    #[test]
    fn every_field_has_an_attribute() {
        for class in CLASSES {
            for (code, _) in class.fields {
                assert!(attribute_of(code).is_some(), "{} of {}", code, class.code);
            }
        }
    }
}
