use crate::support::{Workspace, require_fuse};

#[test]
fn a_file_of_the_base_is_there_and_a_hidden_one_is_not() {
    require_fuse!();
    let ws = Workspace::new().file("src/main.py", "print(1)\n").file(".env", "KEY=1\n").mount();
    assert_eq!(std::fs::read_to_string(ws.path("src/main.py")).unwrap(), "print(1)\n");
    let hidden = std::fs::read(ws.path(".env")).unwrap_err();
    assert_eq!(hidden.kind(), std::io::ErrorKind::NotFound);
}
