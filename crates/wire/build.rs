//! Turns `api/` into Rust: messages and services by prost and tonic, proto3 JSON by pbjson. The
//! compiler is a library; no program needs to be installed.

use std::error::Error;
use std::path::{Path, PathBuf};

use prost::Message;

const FILES: [&str; 6] = ["common", "codebase", "sandbox", "process", "workspace", "server"];

fn main() -> Result<(), Box<dyn Error>> {
    let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api");
    println!("cargo:rerun-if-changed={}", api.join("sandbox/v1").display());
    let files = FILES.map(|name| format!("sandbox/v1/{name}.proto"));
    let descriptors = protox::compile(files, [&api])?;
    let bytes = descriptors.encode_to_vec();
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), &bytes)?;
    tonic_prost_build::configure()
        .compile_well_known_types(true)
        .extern_path(".google.protobuf", "::pbjson_types")
        .bytes(".")
        .compile_fds(descriptors)?;
    pbjson_build::Builder::new()
        .register_descriptors(&bytes)?
        .emit_fields()
        .build(&[".sandbox.v1"])?;
    Ok(())
}
