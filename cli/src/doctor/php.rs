//! Checks of PHP: whether the extension is loaded, its version, and the store that it uses.

use std::path::Path;
use std::process::{Command, Stdio};

use mcp_state::Dsn;
use serde_json::Value;

use super::Report;
use crate::store::Located;

/// The script that describes PHP. It opens no store.
const SCRIPT: &str = r"
$loaded = extension_loaded('mcp_state');
echo json_encode([
    'php' => PHP_VERSION,
    'zts' => PHP_ZTS === 1,
    'binary' => PHP_BINARY,
    'extension' => $loaded ? phpversion('mcp_state') : null,
    'api' => $loaded ? constant('McpState\Native\API_VERSION') : null,
    'dsn' => $loaded ? ini_get('mcp_state.dsn') : null,
    'file' => is_file(ini_get('extension_dir') . '/mcp_state.so'),
    'ffi' => extension_loaded('ffi') ? ini_get('ffi.enable') : null,
]);
";

pub(super) fn check(report: &mut Report, php: &Path, store: Option<&Located>) {
    let run = Command::new(php)
        .args(["-d", "display_errors=stderr", "-r", SCRIPT])
        .env_remove("MCP_STATE_DSN")
        .stdin(Stdio::null())
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            report.hint("php", format!("cannot run {}: {error}", php.display()), "name PHP with --php or PHP=");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    // PHP may print warnings before the line of JSON.
    let answer = said.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let Some(answer) = answer.filter(Value::is_object) else {
        let seen = format!("{} -r ended with {} and printed {said:?}", php.display(), output.status);
        report.wrong("php", seen, "repair PHP first; `php -v` shows its errors");
        return;
    };
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let threads = if answer["zts"] == true { "ZTS" } else { "NTS" };
    report.good("php", format!("{} {threads}, {}", text("php"), text("binary")));
    if answer["extension"].is_null() {
        let (enabled, note) = ("php-fpm may use another php.ini, which its phpinfo() shows", "docs/install.md");
        if answer["file"] == true {
            let mend = format!("`phpenmod mcp_state`, or add extension=mcp_state to php.ini ({enabled})");
            report.wrong("extension", "mcp_state is installed but not enabled", mend);
        } else if answer["ffi"] == "1" || answer["ffi"] == "preload" {
            let mend = format!("the library can use FFI instead ({note}); the extension is several times faster");
            report.hint("extension", format!("mcp_state is not installed; ffi.enable is {}", text("ffi")), mend);
        } else {
            report.wrong("extension", "mcp_state is not installed", format!("install it as {note} says ({enabled})"));
        }
        return;
    }
    let version = text("extension");
    let seen = format!("mcp_state {version}, API {}", answer["api"]);
    if version == mcp_state::VERSION {
        report.good("extension", seen);
    } else {
        let mend = "both can share one store; upgrade the older one when convenient";
        report.hint("extension", format!("{seen}; this command is {}", mcp_state::VERSION), mend);
    }
    let dsn = Dsn::shown(&text("dsn"));
    let same = |store: &Located| dsn.split('?').next() == store.shown().split('?').next();
    match store {
        Some(store) if !same(store) => {
            let mend = "if the application does not name its store, set mcp_state.dsn or MCP_STATE_DSN";
            report.hint("ini", format!("mcp_state.dsn is {dsn}, not {}", store.shown()), mend);
        }
        _ => report.good("ini", format!("mcp_state.dsn is {dsn}")),
    }
}
