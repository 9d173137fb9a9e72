//! The `/etc` of a sandbox: what programs need to work, and nothing that says who the host is.
//!
//! Part of it is written here, part of it is the host's. The list is complete: what is not on it
//! does not exist inside.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::Network;

/// The user that everything inside runs as.
pub const USER: &str = "user";
pub const UID: u32 = 1000;
pub const GID: u32 = 1000;
pub const HOME: &str = "/home/user";

/// What is shown of the host's `/etc`. Files are copied, directories are bound, symlinks are kept.
pub(crate) const FROM_HOST: [&str; 13] = [
    "ca-certificates",
    "ca-certificates.conf",
    "alternatives",
    "localtime",
    "timezone",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "mime.types",
    "terminfo",
    "inputrc",
    "pki/ca-trust",
    "pki/java",
];

/// Directories of the host's `/etc` that hold private keys beside what everybody needs: their
/// entries are shown one by one, without these.
pub(crate) const WITHOUT_KEYS: [&str; 2] = ["ssl", "pki/tls"];
pub(crate) const KEYS: [&str; 1] = ["private"];

/// What the written part depends on.
#[derive(Debug, Clone)]
pub struct Etc<'a> {
    pub hostname: &'a str,
    /// The content of `resolv.conf`.
    pub resolver: &'a str,
}

impl Etc<'_> {
    /// The files to write: name and content.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        vec![
            ("passwd", passwd()),
            ("group", group()),
            ("hosts", self.hosts()),
            ("hostname", format!("{}\n", self.hostname)),
            ("resolv.conf", self.resolver.to_owned()),
            ("nsswitch.conf", nsswitch()),
        ]
    }

    fn hosts(&self) -> String {
        let name = self.hostname;
        format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {name}\n")
    }
}

fn passwd() -> String {
    format!(
        "root:x:0:0:root:/root:/bin/sh\n\
         {USER}:x:{UID}:{GID}:{USER}:{HOME}:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
    )
}

fn group() -> String {
    format!("root:x:0:\n{USER}:x:{GID}:\nnogroup:x:65534:\n")
}

/// Only what can work inside: no daemons of the host are asked.
fn nsswitch() -> String {
    let lines = ["passwd: files", "group: files", "shadow: files", "hosts: files dns"];
    lines
        .iter()
        .chain(&["networks: files", "services: files", ""])
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

/// A sandbox's id as a host name: what is not allowed in one becomes a dash.
pub fn hostname(id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = id.chars().map(allowed).take(63).collect();
    match name.trim_matches('-') {
        "" => "sandbox".to_owned(),
        name => name.to_owned(),
    }
}

/// The content of `resolv.conf`: nobody to ask without a network, the host's otherwise.
pub(crate) fn resolver(network: Network, host: &Path) -> String {
    const ENOUGH: u64 = 64 * 1024;
    match network {
        Network::None | Network::Bridge => String::new(),
        Network::Host => {
            let mut text = String::new();
            // A host without one resolves what /etc/hosts knows; so does the sandbox.
            let _ = fs::File::open(host).map(|f| f.take(ENOUGH).read_to_string(&mut text));
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_files_are_these() {
        let files = Etc { hostname: "box", resolver: "" }.files();
        let text: String = files.iter().map(|(name, text)| format!("[{name}]\n{text}")).collect();
        assert_eq!(
            text,
            "\
[passwd]
root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
[group]
root:x:0:
user:x:1000:
nogroup:x:65534:
[hosts]
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
127.0.1.1 box
[hostname]
box
[resolv.conf]
[nsswitch.conf]
passwd: files
group: files
shadow: files
hosts: files dns
networks: files
services: files
"
        );
    }

    #[test]
    fn ids_become_host_names() {
        for (id, name) in [
            ("sandbox-1", "sandbox-1"),
            ("My_Box", "my-box"),
            ("-x-", "x"),
            ("", "sandbox"),
            ("a\nb 127.0.0.1 evil", "a-b-127-0-0-1-evil"),
        ] {
            assert_eq!(hostname(id), name, "{id:?}");
        }
        assert_eq!(hostname(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn without_a_network_there_is_nobody_to_ask() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("resolv.conf");
        fs::write(&file, "nameserver 192.0.2.1\n").unwrap();
        assert_eq!(resolver(Network::None, &file), "");
        assert_eq!(resolver(Network::Host, &file), "nameserver 192.0.2.1\n");
        assert_eq!(resolver(Network::Host, &dir.path().join("none")), "");
    }

    #[test]
    fn nothing_secret_is_on_the_list() {
        for secret in
            ["shadow", "gshadow", "ssh", "ssl", "pki", "sudoers", "krb5.keytab", "machine-id"]
        {
            assert!(!FROM_HOST.contains(&secret), "{secret}");
        }
    }
}
