//! Namespaces are a prefix of topics and groups, kept apart by a `%`.

use std::borrow::Cow;

/// Begins the name of the topic that a broker keeps for a group.
pub(super) const RETRY: &str = "%RETRY%";
const DEAD_LETTERS: &str = "%DLQ%";
/// The topic whose route tells which brokers make topics at the first message (`autoCreateTopicEnable`).
pub const TEMPLATE: &str = "TBW102";

/// The name of a topic or group on the wire. A name that has the namespace already stays, and so do names that the
/// servers keep for themselves.
pub fn qualified<'a>(namespace: Option<&str>, name: &'a str) -> Cow<'a, str> {
    let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else { return Cow::Borrowed(name) };
    let prefix = [RETRY, DEAD_LETTERS].into_iter().find(|prefix| name.starts_with(prefix)).unwrap_or_default();
    let bare = &name[prefix.len()..];
    let has_it = bare.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('%'));
    let is_the_servers = name == TEMPLATE || name.starts_with("rmq_sys_") || name.starts_with("CID_RMQ_SYS_");
    if has_it || name.is_empty() || is_the_servers {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{prefix}{namespace}%{bare}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_goes_before_topics_and_groups_once() {
        for (namespace, name, wire) in [
            (None, "T", "T"),
            (Some(""), "T", "T"),
            (Some("ns"), "T", "ns%T"),
            (Some("ns"), "ns%T", "ns%T"),
            (Some("ns"), "nsT", "ns%nsT"),
            (Some("ns"), "%RETRY%G", "%RETRY%ns%G"),
            (Some("ns"), "%DLQ%ns%G", "%DLQ%ns%G"),
            (Some("ns"), "rmq_sys_TRACE", "rmq_sys_TRACE"),
            (Some("ns"), TEMPLATE, TEMPLATE),
        ] {
            assert_eq!(qualified(namespace, name), wire, "{namespace:?} {name}");
        }
    }
}
