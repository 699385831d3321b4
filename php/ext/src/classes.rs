//! MINIT and MSHUTDOWN: registers ini settings and classes, and nothing else.
//!
//! `Engine` and `Session` are registered by hand, because what ext-php-rs registers of itself has a public constructor. Their
//! objects come from the extension only; `new` throws.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::OnceLock;

use ext_php_rs::builders::ClassBuilder;
use ext_php_rs::class::RegisteredClass;
use ext_php_rs::ffi::{
    IS_LONG, IS_NULL, IS_STRING, std_object_handlers, zend_function, zend_object_handlers, zend_objects_new,
    zend_throw_error,
};
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::{ZendHashTable, ZendObject, ZendStr};
use ext_php_rs::zend::ClassEntry;

use crate::engine::Engine;
use crate::session::Session;
use crate::{failure, ini};

unsafe extern "C" {
    fn zend_add_attribute(
        attributes: *mut *mut ZendHashTable,
        name: *mut ZendStr,
        arguments: u32,
        flags: u32,
        parameter: u32,
        line: u32,
    ) -> *mut c_void;
}

/// MINIT.
pub(crate) unsafe extern "C" fn startup(_type: i32, module: i32) -> i32 {
    let registered = catch_unwind(|| {
        ini::register(module);
        failure::register()?;
        register::<Engine>()?;
        register::<Session>()
    });
    match registered {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("mcp_state: cannot register its classes: {error}");
            1
        }
        Err(_) => 1,
    }
}

/// MSHUTDOWN.
pub(crate) unsafe extern "C" fn shutdown(_type: i32, module: i32) -> i32 {
    ini::unregister(module);
    0
}

fn register<T: RegisteredClass>() -> ext_php_rs::error::Result<()> {
    let flags = ClassFlags::Final | ClassFlags::NotSerializable | ClassFlags::NoDynamicProperties;
    let mut class = ClassBuilder::new(T::CLASS_NAME).flags(flags);
    for (method, flags) in T::method_builders() {
        class = class.method(method, flags);
    }
    for (name, value, docs, flags) in T::constants() {
        class = class.dyn_constant(*name, *value, docs, *flags)?;
    }
    class
        .registration(|class, arguments| {
            class.__bindgen_anon_2.create_object = Some(create);
            declare_types(class);
            keep_from_traces(class);
            T::get_metadata().set_arg_info(arguments);
            T::get_metadata().set_ce(class);
        })
        .register()
}

/// `zend_class_entry.create_object`: an object that holds nothing and whose constructor throws.
unsafe extern "C" fn create(class: *mut ClassEntry) -> *mut ZendObject {
    struct Handlers(zend_object_handlers);
    // SAFETY: a table of function pointers that is never written after it was made.
    unsafe impl Send for Handlers {}
    // SAFETY: as above.
    unsafe impl Sync for Handlers {}
    static HANDLERS: OnceLock<Handlers> = OnceLock::new();
    let handlers = HANDLERS.get_or_init(|| {
        // SAFETY: the standard handlers are set when PHP starts, and are plain data.
        let mut handlers = unsafe {
            let mut handlers = MaybeUninit::uninit();
            ptr::copy_nonoverlapping(&raw const std_object_handlers, handlers.as_mut_ptr(), 1);
            handlers.assume_init()
        };
        handlers.get_constructor = Some(refuse);
        handlers.clone_obj = None;
        Handlers(handlers)
    });
    // SAFETY: the engine calls this with a class; an object of standard layout has the standard handlers but for two.
    unsafe {
        let object = zend_objects_new(class);
        (*object).handlers = &raw const handlers.0;
        object
    }
}

unsafe extern "C" fn refuse(_object: *mut ZendObject) -> *mut zend_function {
    // SAFETY: the format has no directives; the engine copies the text.
    unsafe {
        zend_throw_error(
            ptr::null_mut(),
            c"use McpState\\Native\\Engine::open(), which gives the engine, and the engine gives sessions".as_ptr(),
        );
    }
    ptr::null_mut()
}

/// Marks the DSN `#[\SensitiveParameter]`, so that no stack trace shows its password (PHP 8.2 and later).
fn keep_from_traces(class: &mut ClassEntry) {
    const PERSISTENT: u32 = 1;
    const FIRST_PARAMETER: u32 = 1;
    let Some(open) = class.function_table.get("open") else { return };
    let name = ZendStr::new("SensitiveParameter", true);
    // SAFETY: an entry of an internal class's table points to an internal function, which frees persistent attributes with
    // itself; the engine keeps a reference to the name, or a copy.
    unsafe {
        let Some(function) = open.ptr::<zend_function>() else { return };
        let attributes = &raw mut (*function).internal_function.attributes;
        zend_add_attribute(attributes, (&raw const *name).cast_mut(), 0, PERSISTENT, FIRST_PARAMETER, 0);
    }
}

/// Declares the types of parameters for which ext-php-rs has no words: `int|string`, and `?string` without a default.
fn declare_types(class: &mut ClassEntry) {
    const INT_OR_STRING: u32 = 1 << IS_LONG | 1 << IS_STRING;
    const STRING_OR_NULL: u32 = 1 << IS_STRING | 1 << IS_NULL;
    const TYPES: [(&str, u32, u32); 6] = [
        ("beginrequest", 1, INT_OR_STRING),
        ("finishrequest", 1, INT_OR_STRING),
        ("iscancelled", 1, INT_OR_STRING),
        ("cancelrequest", 0, INT_OR_STRING),
        ("compareandset", 1, STRING_OR_NULL),
        ("compareandset", 2, STRING_OR_NULL),
    ];
    for (method, parameter, types) in TYPES {
        let Some(method) = class.function_table.get(method) else { continue };
        // SAFETY: an entry of an internal class's table points to an internal function, with as many parameters as it says. The
        // table of parameters was allocated for this class and is not used before MINIT ends.
        unsafe {
            let Some(function) = method.ptr::<zend_function>() else { continue };
            let function = &(*function).internal_function;
            if parameter < function.num_args {
                (*function.arg_info.add(parameter as usize)).type_.type_mask = types;
            }
        }
    }
}
