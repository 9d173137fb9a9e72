//! What runs in a sandbox, through real wardens: the binary is started, asked through its socket,
//! and everything it leaves behind is looked for.

mod exec;
mod run;
mod support;
