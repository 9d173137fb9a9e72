//! From a request to the message of a call: the body, with what the path and the query say.

use std::borrow::Cow;

use axum::RequestPartsExt;
use axum::body::to_bytes;
use axum::extract::{RawPathParams, Request};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use ringfence_engine::problem::{Code, Problem, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::with_caller;

/// The largest body of a message; files have ways of their own.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

pub(super) async fn read<Q: DeserializeOwned>(
    method: &MethodDescriptor,
    request: Request,
) -> Result<tonic::Request<Q>> {
    let (mut parts, body) = request.into_parts();
    let message = method.input();
    let mut fields = body_fields(&parts, body).await?;
    let mut asked = Map::new();
    query_fields(&message, parts.uri.query().unwrap_or(""), &mut asked)?;
    add_once(&message, asked, &mut fields)?;
    path_fields(&message, &mut parts, &mut fields).await?;
    Ok(with_caller(&parts.extensions, understood(fields)?))
}

/// What the query says is not said again in the body.
fn add_once(
    message: &MessageDescriptor,
    asked: Map<String, Value>,
    fields: &mut Map<String, Value>,
) -> Result<()> {
    for (name, value) in asked {
        let json = message.get_field_by_name(&name).map(|field| field.json_name().to_owned());
        if fields.contains_key(&name) || json.is_some_and(|json| fields.contains_key(&json)) {
            return Err(Problem::invalid(format!("{name} is in the query and in the body")));
        }
        fields.insert(name, value);
    }
    Ok(())
}

/// In the JSON of messages, null is the same as not given.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The same of a request whose body is something else.
pub(super) async fn from_path_and_query<Q: DeserializeOwned>(
    message: &MessageDescriptor,
    parts: &mut Parts,
) -> Result<Q> {
    let mut fields = Map::new();
    query_fields(message, parts.uri.query().unwrap_or(""), &mut fields)?;
    path_fields(message, parts, &mut fields).await?;
    understood(fields)
}

fn understood<Q: DeserializeOwned>(fields: Map<String, Value>) -> Result<Q> {
    serde_json::from_value(without_nulls(Value::Object(fields)))
        .map_err(|e| Problem::invalid(format!("the request cannot be understood: {e}")))
}

/// Nothing, or a JSON object that says it is one. What a browser can send on behalf of any page
/// does not say so.
async fn body_fields(parts: &Parts, body: axum::body::Body) -> Result<Map<String, Value>> {
    let too_large = || {
        Problem::new(Code::ResourceLimitExceeded, "the request is too large")
            .with("limit", "request_bytes")
            .with("most", LARGEST_BODY.to_string())
    };
    let bytes = to_bytes(body, LARGEST_BODY).await.map_err(|_| too_large())?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if kind.split(';').next().is_none_or(|kind| kind.trim() != "application/json") {
        return Err(Problem::invalid("a body must be sent as `content-type: application/json`"));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Problem::invalid("the body must be a JSON object")),
        Err(e) => Err(Problem::invalid(format!("the body is not JSON: {e}"))),
    }
}

async fn path_fields(
    message: &MessageDescriptor,
    parts: &mut Parts,
    fields: &mut Map<String, Value>,
) -> Result<()> {
    let named = parts.extract::<RawPathParams>().await;
    let named = named.map_err(|_| Problem::invalid("the path cannot be understood"))?;
    for (name, value) in &named {
        let field = message.get_field_by_name(name);
        let field = field.expect("paths name fields of their messages; a test looks");
        let value = Value::from(value);
        for spelling in [field.name(), field.json_name()] {
            if fields.remove(spelling).is_some_and(|other| other != value) {
                let text = format!("{name} is one thing in the path and another elsewhere");
                return Err(Problem::invalid(text));
            }
        }
        fields.insert(field.name().into(), value);
    }
    Ok(())
}

/// `page_size=10`, `recursive=true`, `labels[env]=test`; a list is a name that is repeated.
fn query_fields(
    message: &MessageDescriptor,
    query: &str,
    fields: &mut Map<String, Value>,
) -> Result<()> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let (name, key) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, key)) => (Cow::from(name), Some(key)),
            None => (Cow::from(&*name), None),
        };
        let field = message
            .get_field_by_name(&name)
            .or_else(|| message.get_field_by_json_name(&name))
            .ok_or_else(|| Problem::invalid(format!("there is no parameter {name:?}")))?;
        put(&field, key, &value, fields)?;
    }
    Ok(())
}

fn put(
    field: &FieldDescriptor,
    key: Option<&str>,
    value: &str,
    fields: &mut Map<String, Value>,
) -> Result<()> {
    let bad = || Problem::invalid(format!("the parameter {:?} cannot be {value:?}", field.name()));
    let entry = fields.entry(field.name());
    match (field.is_map(), key) {
        (true, Some(key)) => {
            let map = entry.or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut().ok_or_else(bad)?.insert(key.into(), value.into());
        }
        (true, None) | (false, Some(_)) => return Err(bad()),
        (false, None) if field.is_list() => {
            let list = entry.or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().ok_or_else(bad)?.push(scalar(field, value).ok_or_else(bad)?);
        }
        (false, None) => {
            *entry.or_insert(Value::Null) = scalar(field, value).ok_or_else(bad)?;
        }
    }
    Ok(())
}

/// As the message's JSON has it; numbers may be texts there.
fn scalar(field: &FieldDescriptor, value: &str) -> Option<Value> {
    match field.kind() {
        Kind::Bool => match value {
            "true" | "1" | "" => Some(true.into()),
            "false" | "0" => Some(false.into()),
            _ => None,
        },
        Kind::Enum(_) => Some(value.parse::<i32>().map_or_else(|_| value.into(), Value::from)),
        Kind::Message(message) => {
            let text = matches!(
                message.full_name(),
                "google.protobuf.Duration" | "google.protobuf.Timestamp"
            );
            text.then(|| value.into())
        }
        _ => Some(value.into()),
    }
}

fn decoded(text: &str) -> Result<String> {
    let bad = || Problem::invalid("the query is not well-formed");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                (high.ok_or_else(bad)? * 16 + low.ok_or_else(bad)?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::DescriptorPool;

    fn fields(message: &str, query: &str) -> Result<Value> {
        let pool = DescriptorPool::decode(ringfence_wire::DESCRIPTORS).unwrap();
        let message = pool.get_message_by_name(&format!("sandbox.v1.{message}")).unwrap();
        let mut fields = Map::new();
        query_fields(&message, query, &mut fields).map(|()| Value::Object(fields))
    }

    #[test]
    fn a_query_becomes_fields() {
        let query = "codebase_id=cb%5F1&pageSize=3&labels%5Benv%5D=a+b&status=2";
        let expected = serde_json::json!({
            "codebase_id": "cb_1", "page_size": "3", "labels": {"env": "a b"}, "status": 2,
        });
        assert_eq!(fields("ListSandboxesRequest", query).unwrap(), expected);
        let listed = fields("ListFilesRequest", "recursive").unwrap();
        assert_eq!(listed, serde_json::json!({"recursive": true}));
        let paths = fields("ExplainRequest", "paths=/a&paths=/b").unwrap();
        assert_eq!(paths, serde_json::json!({"paths": ["/a", "/b"]}));
    }

    #[test]
    fn what_is_not_a_field_is_refused() {
        for query in ["nonsense=1", "labels=1", "codebase_id[x]=1", "page_size=%f", "a=%ff"] {
            assert!(fields("ListSandboxesRequest", query).is_err(), "{query}");
        }
        assert!(fields("ListFilesRequest", "recursive=maybe").is_err());
        assert!(fields("CreateSandboxRequest", "resources=x").is_err());
    }
}
