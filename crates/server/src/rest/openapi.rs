//! The description of all routes (OpenAPI 3.1), made from the table and the descriptors.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::{Route, Verb};

pub(crate) fn describe(routes: &[Route]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let operation = operation(route, &mut schemas);
        paths.entry(shown(route.path)).or_default().insert(route.verb.name().into(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringfence",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Codebases and sandboxes. Messages are proto3 JSON; errors are `{code, message, details}`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    })
}

/// A rest of a path is written like any other parameter there.
fn shown(path: &str) -> String {
    path.replace("{*", "{")
}

impl Route {
    /// The message that the path and the query speak of.
    fn input(&self) -> MessageDescriptor {
        self.first.clone().unwrap_or_else(|| self.method.input())
    }
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }

    fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let input = route.input();
    let output = route.method.output();
    let in_path: BTreeSet<&str> = names_in(route.path).collect();
    let mut parameters: Vec<Value> = input
        .fields()
        .filter(|field| in_path.contains(field.name()))
        .map(|field| {
            let schema = json!({"type": "string", "minLength": 1});
            json!({"name": field.name(), "in": "path", "required": true, "schema": schema})
        })
        .collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [route.method.parent_service().name()],
        "responses": responses(route, &output, schemas),
    });
    if route.first.is_some() {
        let bytes = json!({"type": "string", "format": "binary"});
        operation["requestBody"] =
            json!({"content": {"application/octet-stream": {"schema": bytes}}});
    }
    if route.verb.has_body() && route.first.is_none() {
        let fields = input.fields().filter(|field| !in_path.contains(field.name()));
        let schema = schemas.object(fields);
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    } else {
        let others = input.fields().filter(|field| !in_path.contains(field.name()));
        parameters.extend(others.filter_map(|field| query(&field, schemas)));
    }
    operation["parameters"] = parameters.into();
    operation
}

/// Some calls have two routes.
fn operation_id(route: &Route) -> String {
    let name = format!("{}.{}", route.method.parent_service().name(), route.method.name());
    match route.path.rsplit('/').next() {
        Some(last @ ("staged" | "snapshots")) => format!("{name}.{last}.{}", route.path.len()),
        _ => name,
    }
}

fn names_in(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    parts.map(|name| name.trim_start_matches('*'))
}

/// What can be said in a query: texts, numbers, names, lists of them, and maps as `name[key]`.
fn query(field: &FieldDescriptor, schemas: &mut Schemas) -> Option<Value> {
    let schema = schemas.field(field);
    let parameter = json!({"name": field.name(), "in": "query", "schema": schema});
    match (field.is_map(), field.kind()) {
        (true, _) => {
            let mut parameter = parameter;
            parameter["style"] = "deepObject".into();
            parameter["explode"] = true.into();
            Some(parameter)
        }
        (false, Kind::Message(message)) if !is_text(&message) => None,
        _ => Some(parameter),
    }
}

fn responses(route: &Route, output: &MessageDescriptor, schemas: &mut Schemas) -> Value {
    let schema = schemas.message(output);
    let content = match route.method.is_server_streaming() {
        false => json!({"application/json": {"schema": schema}}),
        true if output.name() == "FileChunk" => json!({
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        }),
        true => json!({
            "application/x-ndjson": {"schema": schema},
            "text/event-stream": {"schema": {"type": "string"}},
        }),
    };
    let error = schemas.error();
    let mut responses = json!({"200": {"description": "done", "content": content}});
    for status in ["400", "401", "403", "404", "408", "409", "410", "429", "500"] {
        responses[status] = json!({
            "description": "refused or failed",
            "content": {"application/json": {"schema": error}},
        });
    }
    responses
}

fn is_text(message: &MessageDescriptor) -> bool {
    matches!(message.full_name(), "google.protobuf.Duration" | "google.protobuf.Timestamp")
}

/// Schemas of the messages that routes speak of, and of those these speak of.
#[derive(Default)]
struct Schemas {
    wanted: BTreeMap<String, MessageDescriptor>,
    error: bool,
}

impl Schemas {
    fn message(&mut self, message: &MessageDescriptor) -> Value {
        match message.full_name() {
            "google.protobuf.Duration" => {
                json!({"type": "string", "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$"})
            }
            "google.protobuf.Timestamp" => json!({"type": "string", "format": "date-time"}),
            _ => {
                let name = short(message);
                self.wanted.entry(name.clone()).or_insert_with(|| message.clone());
                reference(&name)
            }
        }
    }

    fn error(&mut self) -> Value {
        self.error = true;
        reference("Error")
    }

    fn object(&mut self, fields: impl Iterator<Item = FieldDescriptor>) -> Value {
        let properties: Map<String, Value> =
            fields.map(|field| (field.json_name().to_owned(), self.field(&field))).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    fn field(&mut self, field: &FieldDescriptor) -> Value {
        if field.is_map()
            && let Kind::Message(entry) = field.kind()
        {
            let value = self.kind(entry.map_entry_value_field().kind());
            return json!({"type": "object", "additionalProperties": value});
        }
        let one = self.kind(field.kind());
        match field.is_list() {
            true => json!({"type": "array", "items": one}),
            false => one,
        }
    }

    fn kind(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Bool => json!({"type": "boolean"}),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                json!({"type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX})
            }
            Kind::Uint32 | Kind::Fixed32 => {
                json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                json!({"type": "string", "format": "int64", "pattern": "^-?[0-9]{1,18}$"})
            }
            Kind::Uint64 | Kind::Fixed64 => {
                json!({"type": "string", "format": "uint64", "pattern": "^[0-9]{1,19}$"})
            }
            Kind::Double | Kind::Float => json!({"type": "number"}),
            Kind::String => json!({"type": "string"}),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Kind::Enum(names) => {
                let names: Vec<String> =
                    names.values().map(|value| value.name().to_owned()).collect();
                json!({"type": "string", "enum": names})
            }
            Kind::Message(message) => self.message(&message),
        }
    }

    /// Everything that is spoken of, to the last.
    fn finish(mut self) -> Value {
        let mut done: Map<String, Value> = Map::new();
        while let Some((name, message)) =
            self.wanted.iter().find(|(name, _)| !done.contains_key(*name)).map(owned)
        {
            let schema = self.object(message.fields());
            done.insert(name, schema);
        }
        if self.error {
            done.insert(
                "Error".into(),
                json!({
                    "type": "object",
                    "required": ["code", "message", "details"],
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "details": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                }),
            );
        }
        done.into()
    }
}

fn owned((name, message): (&String, &MessageDescriptor)) -> (String, MessageDescriptor) {
    (name.clone(), message.clone())
}

/// Without the package, which all of them are in.
fn short(message: &MessageDescriptor) -> String {
    message.full_name().trim_start_matches("sandbox.v1.").to_owned()
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To bring the file up to date: `RINGFENCE_BLESS=1 cargo test -p ringfence-server openapi`.
    #[test]
    fn the_description_is_the_one_that_is_published() {
        let made = format!("{:#}\n", describe(&super::super::routes::table().routes));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/openapi.json");
        if std::env::var_os("RINGFENCE_BLESS").is_some() {
            std::fs::write(file, &made).unwrap();
        }
        let published = std::fs::read_to_string(file).unwrap_or_default();
        assert!(made == published, "api/openapi.json is not what the routes are");
    }

    #[test]
    fn every_name_in_a_path_is_a_field() {
        for route in super::super::routes::table().routes {
            let input = route.input();
            for name in names_in(route.path) {
                assert!(input.get_field_by_name(name).is_some(), "{name} of {}", route.path);
            }
        }
    }
}
