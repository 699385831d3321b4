//! The committed headers are what cbindgen makes of this crate. `MCP_STATE_WRITE_HEADERS=1 cargo test -p mcp-state-capi --test
//! headers` writes them anew.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A configuration, and where the header it makes is committed. The Composer package carries one of its own.
const HEADERS: [(&str, &[&str]); 2] = [
    ("cbindgen.toml", &["include/mcp_state.h"]),
    ("cbindgen-ffi.toml", &["include/mcp_state.ffi.h", "php/mcp_state.ffi.h"]),
];

fn generate(config: &str) -> String {
    let capi = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(capi.join(config)).expect("a configuration");
    let bindings = cbindgen::generate_with_config(capi, config).expect("bindings");
    let mut header = Vec::new();
    bindings.write(&mut header);
    String::from_utf8(header).expect("UTF-8")
}

#[test]
fn the_committed_headers_are_current() {
    for (config, files) in HEADERS {
        let header = generate(config);
        for file in files {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
            if std::env::var_os("MCP_STATE_WRITE_HEADERS").is_some() {
                fs::write(&path, &header).expect("a writable header");
            }
            let committed = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                committed == header,
                "{file} is not what capi/{config} makes; write it with MCP_STATE_WRITE_HEADERS=1"
            );
        }
    }
}

/// PHP's FFI knows neither `enum name : type` nor what a `#` line says.
#[test]
fn the_header_for_ffi_has_no_directives_but_its_own() {
    let header = generate("cbindgen-ffi.toml");
    let directives: Vec<_> = header.lines().filter(|line| line.trim_start().starts_with('#')).collect();
    assert_eq!(["#define FFI_SCOPE \"mcp_state\"", "#define FFI_LIB \"libmcp_state.so.1\""].as_slice(), directives);
    assert!(!header.contains("enum mcp_state_status :") && !header.contains("static_assert"), "{header}");
}

#[test]
fn the_header_compiles_as_c_and_as_cpp_without_a_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("mcp_state.h"), generate("cbindgen.toml")).expect("a header");
    let source = directory.path().join("include.c");
    let code = "#include <mcp_state.h>\nint main(void) { return mcp_state_abi_version() != MCP_STATE_ABI_VERSION; }\n";
    fs::write(&source, code).expect("a source");
    // clang, which ext-php-rs needs, knows C++ without a further package.
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("clang", "c++", "-std=c++11")] {
        let output = Command::new(compiler)
            .args(["-x", language, standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"])
            .args([directory.path(), &source])
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// One number means one thing, whatever the binding.
#[test]
fn the_numbers_are_those_of_the_php_extension() {
    let stub = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/ext/stubs/mcp_state.stub.php");
    let stub = fs::read_to_string(stub).expect("the stub");
    let header = generate("cbindgen-ffi.toml");
    let constants: Vec<_> =
        stub.lines().filter_map(|line| line.trim().strip_prefix("public const ")?.strip_suffix(';')).collect();
    assert!(constants.len() > 40, "{constants:?}");
    for constant in constants {
        assert!(header.contains(&format!("  MCP_STATE_{constant},\n")), "{constant} is not in the header");
    }
}
