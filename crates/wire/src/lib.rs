//! What bytes on the network look like: the messages and services of `api/`, and their JSON.

/// Generated from `api/sandbox/v1`.
#[allow(clippy::all, missing_debug_implementations, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("sandbox.v1");
    include!(concat!(env!("OUT_DIR"), "/sandbox.v1.serde.rs"));
}

/// The descriptors of all messages and services, as a serialised `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
