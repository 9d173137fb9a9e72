use super::outside;
use crate::support::{Workspace, require_fuse};

in_both_modes! {
    a_python_environment_is_made_and_a_wheel_installed_and_removed
    npm_installs_a_local_tarball
}

/// A wheel is a zip file with a list of its content.
const MAKE_WHEEL: &str = "import zipfile
files = {
    'tiny/__init__.py': 'def hello():\\n    return \"hello from tiny\"\\n',
    'tiny/data/deep/file.txt': 'data\\n',
    'tiny-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n',
    'tiny-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
    'tiny-1.0.dist-info/entry_points.txt': '[console_scripts]\\ntiny = tiny:main\\n',
}
record = ''.join(f'{name},,\\n' for name in files) + 'tiny-1.0.dist-info/RECORD,,\\n'
with zipfile.ZipFile('tiny-1.0-py3-none-any.whl', 'w') as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
    wheel.writestr('tiny-1.0.dist-info/RECORD', record)
";

fn a_python_environment_is_made_and_a_wheel_installed_and_removed(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    // pip brings certificates in a `.pem` file, a name that the preset hides.
    let ws = ws
        .preset("development")
        .rule("write:/venv/**@200")
        .file("make_wheel.py", MAKE_WHEEL)
        .with_base(|base| drop(outside(base, "python3 make_wheel.py")))
        .mount();
    let say = "venv/bin/python -c 'import tiny; print(tiny.hello())'";
    ws.ok("python3 -m venv venv");
    ws.ok("venv/bin/python -m pip install -q --no-index --disable-pip-version-check ./tiny-1.0-py3-none-any.whl");
    assert_eq!(ws.ok(say), "hello from tiny\n");
    ws.ok("test -x venv/bin/tiny");
    let ws = ws.remount(None);
    assert_eq!(ws.ok(say), "hello from tiny\n");
    ws.ok("venv/bin/python -m pip uninstall -q -y tiny");
    ws.fails(say);
    ws.ok("test ! -e venv/lib/python*/site-packages/tiny && rm -rf venv && test ! -e venv");
}

fn npm_installs_a_local_tarball(ws: Workspace) {
    require_fuse!();
    require_programs!("npm" "node");
    let ws = ws
        .preset("development")
        .file(
            "tiny/package.json",
            r#"{"name":"tiny","version":"1.0.0","main":"index.js","bin":{"tiny":"cli.js"}}"#,
        )
        .file("tiny/index.js", "module.exports = () => 'hello from tiny';\n")
        .file("tiny/cli.js", "#!/usr/bin/env node\nconsole.log(require('./')());\n")
        .file("app/package.json", r#"{"name":"app","version":"1.0.0","private":true}"#)
        .file("app/node_modules/old/package.json", r#"{"name":"old","version":"0.1.0"}"#)
        .mount();
    let npm = "export npm_config_cache=$PWD/../../npm-cache HOME=$PWD/../.. npm_config_offline=true \
        npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false; npm";
    ws.ok(&format!("cd tiny && {npm} pack --silent && test -s tiny-1.0.0.tgz"));
    ws.ok(&format!("cd app && {npm} install --silent ../tiny/tiny-1.0.0.tgz"));
    assert_eq!(ws.ok("cd app && node -p 'require(\"tiny\")()'"), "hello from tiny\n");
    assert_eq!(ws.ok("app/node_modules/.bin/tiny"), "hello from tiny\n");
    // What package.json does not name is pruned, also where it came from the base.
    ws.ok("test ! -e app/node_modules/old");
    let ws = ws.remount(None);
    ws.ok("test ! -e app/node_modules/old && grep -q tiny app/package-lock.json");
    ws.ok(&format!("cd app && rm -rf node_modules && {npm} ci --silent"));
    assert_eq!(ws.ok("app/node_modules/.bin/tiny"), "hello from tiny\n");
}
