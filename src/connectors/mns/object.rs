//! A JSON object whose values are still text.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a JSON object in their order; of a name that stands twice, both.
pub(super) struct Object<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The last member of the name: what a JSON reader takes.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A name that borrows from the text unless it holds an escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of a value that is an object.
pub(super) fn members<'a>(value: &'a RawValue) -> Option<Object<'a>> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()).ok() } else { None }
}
