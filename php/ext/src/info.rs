//! The block of `phpinfo()`. It opens no store: it shows what is set, and the counters of the stores this process has open.

use std::ffi::CString;
use std::panic::catch_unwind;

use ext_php_rs::ffi::{
    php_info_print_table_end, php_info_print_table_header, php_info_print_table_row, php_info_print_table_start,
};
use ext_php_rs::zend::ModuleEntry;
use mcp_state::{Dsn, Place, StoreStats};

use crate::{API_VERSION, ini, stores};

unsafe extern "C" {
    fn display_ini_entries(module: *mut ModuleEntry);
}

/// The module's info function.
pub(crate) unsafe extern "C" fn print(module: *mut ModuleEntry) {
    let _ = catch_unwind(|| {
        table(None, &summary());
        for engine in stores::all() {
            let rows = match engine.stats() {
                Ok(stats) => counters(stats),
                Err(error) => vec![("store".into(), error.to_string())],
            };
            table(Some(engine.dsn()), &rows);
        }
    });
    // SAFETY: the engine calls this with the module.
    unsafe { display_ini_entries(module) };
}

type Row = (String, String);

fn summary() -> Vec<Row> {
    let dsn = ini::dsn();
    let place = match Dsn::parse(&dsn).map(|dsn| dsn.place) {
        Ok(Place::Memory) => "the memory of this process".to_owned(),
        Ok(Place::SharedMemory(name)) => format!("shared memory, {name}"),
        Ok(Place::Directory(directory)) => directory.display().to_string(),
        Ok(_) => "another kind of store".to_owned(),
        Err(error) => error.to_string(),
    };
    vec![
        ("version".into(), mcp_state::VERSION.into()),
        ("API version".into(), API_VERSION.to_string()),
        ("default store".into(), Dsn::shown(&dsn)),
        ("its place".into(), place),
        ("stores this process has open".into(), stores::all().len().to_string()),
    ]
}

fn counters(stats: StoreStats) -> Vec<Row> {
    let place = stats.place.into_iter().map(|(name, value)| (name.to_owned(), value));
    let usage = [("sessions", stats.sessions), ("used bytes", stats.used_bytes), ("limit bytes", stats.limit_bytes)];
    let numbers = usage.into_iter().chain(stats.counters).chain(stats.limits);
    place.chain(numbers.map(|(name, number)| (name.to_owned(), number.to_string()))).collect()
}

fn table(header: Option<&str>, rows: &[Row]) {
    let text = |text: &str| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    // SAFETY: each call gets as many C strings as it says, which live until it returns.
    unsafe {
        php_info_print_table_start();
        if let Some(header) = header {
            php_info_print_table_header(2, c"store".as_ptr(), text(header).as_ptr());
        }
        for (name, value) in rows {
            php_info_print_table_row(2, text(name).as_ptr(), text(value).as_ptr());
        }
        php_info_print_table_end();
    }
}
