//! The ini settings: `mcp_state.dsn` (PERDIR), and what else a DSN's options can say (SYSTEM).
//!
//! A setting has the name of the option, and goes through the same parser; the options of the DSN go over the settings. What
//! makes no sense is said when a store is opened, never ignored.
//!
//! A server may change settings for a request (php-fpm's `PHP_ADMIN_VALUE`), so each asks for them; they are read anew only when PHP
//! has changed one since.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::OnceLock;

use ext_php_rs::ffi::{php_output_write, sapi_module, zend_ini_entry, zend_string};
use ext_php_rs::flags::IniEntryPermission;
use ext_php_rs::zend::IniEntryDef;
use mcp_state::{Dsn, DsnError, ErrorKind, Limit, Settings};

use crate::failure::Failure;

unsafe extern "C" {
    fn zend_ini_string(name: *const c_char, length: usize, original: i32) -> *const c_char;
    fn zend_unregister_ini_entries(module: i32);
    fn php_html_puts(text: *const c_char, length: usize);
}

/// The setting that names the store.
const DSN: &CStr = c"mcp_state.dsn";

/// The store when nothing is set.
const DEFAULT_DSN: &CStr = c"shm://mcp";

struct Setting {
    /// The option of a DSN.
    option: &'static str,
    /// The setting: the option with `mcp_state.` before it.
    name: CString,
    default: CString,
}

/// All settings but the DSN.
fn all() -> &'static [Setting] {
    static SETTINGS: OnceLock<Vec<Setting>> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let defaults = Settings::default();
        let times = [
            ("ttl_ms", defaults.ttl_ms),
            ("lease_ms", defaults.lease_ms),
            ("request_timeout_ms", defaults.request_timeout_ms),
        ];
        Limit::ALL
            .iter()
            .map(|limit| (limit.name(), with_unit(limit.default_value())))
            .chain(times.map(|(option, span)| (option, span.to_string())))
            .map(|(option, default)| Setting {
                option,
                name: CString::new(format!("mcp_state.{option}")).unwrap_or_default(),
                default: CString::new(default).unwrap_or_default(),
            })
            .collect()
    })
}

/// A size as people write it.
fn with_unit(size: u64) -> String {
    match size {
        size if size >= 1 << 20 && size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        size => size.to_string(),
    }
}

struct Table(Vec<IniEntryDef>);

// SAFETY: the table is never written after it was made, and what it points to is static.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Registers the settings. For MINIT.
pub(crate) fn register(module: i32) {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let per_directory = IniEntryPermission::PerDir | IniEntryPermission::System;
        let mut dsn = IniEntryDef::new(DSN, DEFAULT_DSN, per_directory);
        dsn.displayer = Some(display_dsn);
        let mut entries = vec![dsn];
        entries.extend(all().iter().map(|setting| {
            let mut entry = IniEntryDef::new(&setting.name, &setting.default, IniEntryPermission::System);
            entry.on_modify = Some(forget_options);
            entry
        }));
        entries.push(IniEntryDef::end());
        Table(entries)
    });
    IniEntryDef::register(&table.0, module);
}

/// Shows `mcp_state.dsn` where PHP lists settings (`phpinfo()`, `php --ri`): without a password.
unsafe extern "C" fn display_dsn(entry: *mut zend_ini_entry, which: i32) {
    /// What is asked for is the value that a directory or script has changed (`ZEND_INI_DISPLAY_ORIG`).
    const ORIGINAL: i32 = 1;
    let _ = catch_unwind(|| {
        // SAFETY: the engine calls this with the registered entry, whose values are strings of its own or null, and does not
        // change it meanwhile.
        let dsn = unsafe {
            let entry = &*entry;
            let value = if which == ORIGINAL && entry.modified.is_set() { entry.orig_value } else { entry.value };
            value.as_ref().map_or(Cow::Borrowed(""), |value| String::from_utf8_lossy(value.as_bytes()))
        };
        let dsn = Dsn::shown(&dsn);
        let text = if dsn.is_empty() { "no value" } else { &dsn };
        // SAFETY: the server interface is set before modules start and not written to after; both functions copy so many bytes.
        unsafe {
            if sapi_module.phpinfo_as_text == 0 {
                php_html_puts(text.as_ptr().cast(), text.len());
            } else {
                php_output_write(text.as_ptr().cast(), text.len());
            }
        }
    });
}

/// A field of Zend that is a number up to PHP 8.5 and a `bool` from PHP 8.6 on: `zend_ini_entry.modified`.
trait Flag {
    /// Whether it is true.
    fn is_set(&self) -> bool;
}

impl Flag for u8 {
    fn is_set(&self) -> bool {
        *self != 0
    }
}

impl Flag for bool {
    fn is_set(&self) -> bool {
        *self
    }
}

/// Takes the settings back. For MSHUTDOWN.
pub(crate) fn unregister(module: i32) {
    // SAFETY: the engine calls MSHUTDOWN with the number of this module.
    unsafe { zend_unregister_ini_entries(module) }
}

/// The store that the ini names.
pub(crate) fn dsn() -> String {
    read(DSN).to_string_lossy().into_owned()
}

thread_local! {
    /// [`options`] as this thread has read them, until PHP changes a setting: each thread has settings of its own.
    static OPTIONS: RefCell<Option<Rc<str>>> = const { RefCell::new(None) };
}

/// Called by PHP before it changes one of the settings, and back.
unsafe extern "C" fn forget_options(
    _entry: *mut zend_ini_entry,
    _value: *mut zend_string,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _stage: i32,
) -> i32 {
    const SUCCESS: i32 = 0;
    // A thread that ends has nothing to forget any more.
    let _ = OPTIONS.try_with(std::cell::RefCell::take);
    SUCCESS
}

/// Those settings that are not at their default, as options of a DSN; mostly none.
pub(crate) fn options() -> Rc<str> {
    OPTIONS.with_borrow_mut(|options| options.get_or_insert_with(|| read_options().into()).clone())
}

fn read_options() -> String {
    let mut options = String::new();
    for setting in all() {
        let value = read(&setting.name);
        if value != setting.default.as_c_str() {
            options.push_str(if options.is_empty() { "" } else { "&" });
            options.push_str(setting.option);
            options.push('=');
            for &byte in value.to_bytes() {
                match byte {
                    b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => options.push(char::from(byte)),
                    _ => options.push_str(&format!("%{byte:02X}")),
                }
            }
        }
    }
    options
}

/// The settings that [`options`] stand for.
pub(crate) fn settings(options: &str) -> Result<Settings, Failure> {
    match Dsn::parse(&format!("memory://?{options}")) {
        Ok(dsn) => Ok(dsn.settings),
        Err(DsnError::BadOption { option, value, reason }) => {
            Err(Failure::new(ErrorKind::InvalidDsn, format!("ini setting mcp_state.{option} is {value}: {reason}")))
        }
        Err(error) => Err(mcp_state::Error::from(error).into()),
    }
}

/// The present value of a setting; empty when it is not registered.
fn read(name: &CStr) -> &CStr {
    // SAFETY: the name is a C string of that length. The engine gives a C string that lives until the setting is changed,
    // which only PHP code or the end of the request does, or null; the caller uses it before either.
    unsafe {
        let value = zend_ini_string(name.as_ptr(), name.count_bytes(), 0);
        if value.is_null() { c"" } else { CStr::from_ptr(value) }
    }
}
