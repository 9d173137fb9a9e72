use crate::support::{Workspace, require_fuse};

in_both_modes! {
    make_builds_in_parallel_and_rebuilds_only_what_a_touched_header_changes
    cargo_builds_runs_and_sees_nothing_to_do_the_second_time
}

const MAKEFILE: &str = "OBJECTS = a.o b.o c.o d.o main.o
program: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
%.o: %.c
\t$(CC) -O0 -c -o $@ $<
a.o b.o: shared.h
clean:
\trm -f program *.o
";

const MAIN: &str = r#"#include <stdio.h>
int a(void), b(void), c(void), d(void);
int main(void) { printf("%d\n", a() + b() + c() + d()); return 0; }
"#;

fn make_builds_in_parallel_and_rebuilds_only_what_a_touched_header_changes(ws: Workspace) {
    require_fuse!();
    require_programs!("make" "cc");
    let mut ws = ws
        .preset("development")
        .file("Makefile", MAKEFILE)
        .file("shared.h", "#define NUMBER 1\n")
        .file("main.c", MAIN);
    for (name, value) in [("a", "NUMBER"), ("b", "NUMBER")] {
        ws = ws.file(
            format!("{name}.c"),
            format!("#include \"shared.h\"\nint {name}(void) {{ return {value}; }}\n"),
        );
    }
    for name in ["c", "d"] {
        ws = ws.file(format!("{name}.c"), format!("int {name}(void) {{ return 10; }}\n"));
    }
    // An object of the base that is older than its source must be rebuilt over the old one.
    let ws = ws
        .file("c.o", "not an object")
        .with_base(|base| {
            let old = std::fs::File::options().write(true).open(base.join("c.o")).unwrap();
            old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
        })
        .mount();
    ws.ok("make -j2 && test \"$(./program)\" = 22");
    assert!(ws.ok("make -j2").contains("up to date"));
    ws.ok("echo '#define NUMBER 5' > shared.h");
    let rebuilt = ws.ok("make -j2");
    for (object, expected) in [("a.o", true), ("b.o", true), ("c.o", false), ("d.o", false)] {
        assert_eq!(rebuilt.contains(&format!("-o {object}")), expected, "{object}: {rebuilt}");
    }
    assert_eq!(ws.ok("./program"), "30\n");
    let ws = ws.remount(None);
    assert!(ws.ok("make -j2").contains("up to date"));
    // Touching without writing copies up, and keeps the content.
    assert!(ws.ok("touch shared.h && make -j2").contains("-o a.o"));
    ws.ok("test \"$(./program)\" = 30 && make clean && test ! -e program && test ! -e c.o");
}

fn cargo_builds_runs_and_sees_nothing_to_do_the_second_time(ws: Workspace) {
    require_fuse!();
    require_programs!("cargo" "cc");
    let ws = ws
        .preset("development")
        .file(
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        )
        .file("src/lib.rs", "pub fn number() -> u32 {\n    41\n}\n")
        .file("src/main.rs", "fn main() {\n    println!(\"{}\", tiny::number());\n}\n")
        .mount();
    let cargo = "env -u CARGO_TARGET_DIR -u RUSTFLAGS cargo build --offline 2>&1";
    let first = ws.ok(cargo);
    assert!(first.contains("Compiling tiny"), "{first}");
    assert_eq!(ws.ok("target/debug/tiny"), "41\n");
    assert!(!ws.ok(cargo).contains("Compiling"), "nothing changed");
    let ws = ws.remount(None);
    assert!(!ws.ok(cargo).contains("Compiling"), "nothing changed but the mount");
    ws.ok("sed -i s/41/42/ src/lib.rs");
    assert!(ws.ok(cargo).contains("Compiling"));
    assert_eq!(ws.ok("target/debug/tiny"), "42\n");
}
