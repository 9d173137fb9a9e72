//! Arbitrary text as rules, arbitrary bytes as a path: nothing panics, and what compiles decides as
//! the slow matcher of the tests does. The body and the format of the input are in
//! `crates/policy/tests/oracle/fuzz.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/policy/tests/oracle/mod.rs"]
mod oracle;

fuzz_target!(|data: &[u8]| oracle::fuzz::check(data));
