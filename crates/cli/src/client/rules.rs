//! Rules, as they go over the wire and come back.

use ringfence_policy::{Level, PatternType, Rule};
use ringfence_wire::v1;

pub(crate) fn to_wire(rules: &[Rule]) -> Vec<v1::PermissionRule> {
    rules.iter().map(one).collect()
}

fn one(rule: &Rule) -> v1::PermissionRule {
    let permission = match rule.level {
        Level::None => v1::Permission::None,
        Level::View => v1::Permission::View,
        Level::Read => v1::Permission::Read,
        Level::Write => v1::Permission::Write,
    };
    let kind = match rule.pattern_type {
        PatternType::Glob => v1::PatternType::Glob,
        PatternType::Directory => v1::PatternType::Directory,
        PatternType::File => v1::PatternType::File,
    };
    v1::PermissionRule {
        pattern: rule.pattern.clone(),
        r#type: kind.into(),
        permission: permission.into(),
        priority: rule.priority,
    }
}

/// As it would be typed: `write:/output/**@10`.
pub(crate) fn shown(rule: &v1::PermissionRule) -> String {
    let level = level(rule.permission());
    match rule.priority {
        0 => format!("{level}:{}", rule.pattern),
        priority => format!("{level}:{}@{priority}", rule.pattern),
    }
}

pub(crate) fn level(permission: v1::Permission) -> &'static str {
    match permission {
        v1::Permission::Unspecified | v1::Permission::None => "none",
        v1::Permission::View => "view",
        v1::Permission::Read => "read",
        v1::Permission::Write => "write",
    }
}
