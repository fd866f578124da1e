//! The JSON schema of an experiment file.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::Schema;
use serde_json::Value;

use super::experiment::Experiment;

/// Of the file: each field has a default, or is required.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(no_value));
    settings.into_generator().into_root_schema_for::<Experiment>()
}

fn admits_null(field: &Value) -> bool {
    let is_null = |kind: &Value| kind["type"] == "null";
    field["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
        || field["anyOf"].as_array().is_some_and(|kinds| kinds.iter().any(is_null))
}

/// A field that may be left out without a value in its place has the default null, which TOML cannot say.
fn no_value(schema: &mut Schema) {
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for field in fields.values_mut().filter(|field| admits_null(field)) {
        field["default"] = Value::Null;
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::File;
    use super::super::groups;
    use super::*;

    #[test]
    fn each_field_has_a_default_or_is_required() {
        let schema = schema().to_value();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        let mut defaults = 0;
        for table in tables {
            let required = table["required"].as_array().map_or(&[][..], Vec::as_slice);
            for (name, field) in table["properties"].as_object().into_iter().flatten() {
                let (default, meaning) = (field.get("default"), field["description"].as_str().unwrap());
                assert_ne!(default.is_some(), required.iter().any(|required| required == name), "{name}: {field}");
                // What happens then is in its meaning.
                let is_explained = meaning.to_lowercase().contains("without it");
                assert!(default != Some(&Value::Null) || is_explained, "{name}: {meaning}");
                defaults += usize::from(default.is_some());
            }
        }
        assert!(defaults > 50, "{defaults}");
    }

    /// An experiment with one board, of which a field has this value.
    fn with(kind: &str, field: &str, value: i64) -> Result<(), String> {
        let place = match kind {
            "fade" => "interface = 'e'\nmac = '02:00:00:00:00:01'\nprotocol = 'fade10g'",
            "crates" => "sinks = []",
            _ => "address = '127.0.0.2'\nsinks = ['file:{board}-{stream}.dat']",
        };
        let needed = [("port", kind != "fade"), ("window_ns", kind == "crates"), ("expect", kind == "crates")];
        let needed: String = needed
            .iter()
            .filter(|(name, is)| *is && *name != field)
            .map(|(name, _)| format!("{name} = 1024\n"))
            .collect();
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x.toml");
        std::fs::write(&path, format!("[[{kind}]]\nname = 'a'\n{place}\n{needed}{field} = {value}\n")).unwrap();
        let file = File::read(&path).map_err(|error| format!("{error:#}"))?;
        groups::check(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_are_those_that_are_checked() {
        let schema = schema().to_value();
        let mut limits = 0;
        for (kind, table) in [("fade", "Fade"), ("tcp", "Tcp"), ("udp", "Udp"), ("crates", "Crates")] {
            for (name, field) in schema["$defs"][table]["properties"].as_object().unwrap() {
                // Its values are powers of two, and fit to the window.
                let is_ring = name == "ring";
                for (limit, beyond) in [("minimum", -1), ("maximum", 1)] {
                    let Some(value) = field[limit].as_i64() else { continue };
                    let wrong = with(kind, name, value + beyond).unwrap_err();
                    assert!(wrong.contains(&format!("{kind}[0].{name}: `{}`: expected", value + beyond)), "{wrong}");
                    assert!(is_ring && kind == "fade" || with(kind, name, value).is_ok(), "{kind}.{name} = {value}");
                    limits += 1;
                }
            }
        }
        assert!(limits > 12, "{limits}");
    }
}
