//! The one place where an error becomes `McpState\Native\Failure`.
//!
//! The class is registered by hand: a class that ext-php-rs makes of a Rust type and that extends an exception has no file, no
//! line and no trace.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use ext_php_rs::builders::ClassBuilder;
use ext_php_rs::convert::IntoZval;
use ext_php_rs::exception::PhpException;
use ext_php_rs::ffi::{zend_ce_exception, zend_property_info, zend_string, zend_type};
use ext_php_rs::flags::{ClassFlags, DataType, PropertyFlags};
use ext_php_rs::types::{ZendObject, ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, ZendType, ce};
use mcp_state::{Error, ErrorKind, InvalidArgument, LimitExceeded};

use crate::convert::int;

/// The name of the class.
const NAME: &str = "McpState\\Native\\Failure";

/// The class, from one MINIT to the MSHUTDOWN that follows.
static CLASS: AtomicPtr<ClassEntry> = AtomicPtr::new(ptr::null_mut());

/// The names and numbers of `McpState\Native\FailureKind`.
const KINDS: [(&str, ErrorKind); 11] = [
    ("INVALID_ARGUMENT", ErrorKind::InvalidArgument),
    ("INVALID_DSN", ErrorKind::InvalidDsn),
    ("LIMIT_EXCEEDED", ErrorKind::LimitExceeded),
    ("SESSION_NOT_FOUND", ErrorKind::SessionNotFound),
    ("OWNER_EXPIRED", ErrorKind::OwnerExpired),
    ("STORE_UNAVAILABLE", ErrorKind::StoreUnavailable),
    ("STORE_FULL", ErrorKind::StoreFull),
    ("STORE_INCOMPATIBLE", ErrorKind::StoreIncompatible),
    ("STORE_CORRUPT", ErrorKind::StoreCorrupt),
    ("OUTCOME_UNKNOWN", ErrorKind::OutcomeUnknown),
    ("INTERNAL", ErrorKind::Internal),
];

unsafe extern "C" {
    static spl_ce_RuntimeException: *mut ClassEntry;
    fn zend_declare_typed_property(
        class: *mut ClassEntry,
        name: *mut zend_string,
        default: *mut Zval,
        flags: i32,
        doc_comment: *mut zend_string,
        property_type: zend_type,
    ) -> *mut zend_property_info;
    fn zend_update_property(
        class: *mut ClassEntry,
        object: *mut ZendObject,
        name: *const u8,
        length: usize,
        value: *mut Zval,
    );
}

/// What is thrown as `McpState\Native\Failure`.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    limit: Option<LimitExceeded>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), limit: None }
    }
}

/// An argument that the engine never sees.
pub(crate) fn invalid(what: &'static str, value: &str, reason: &str) -> Failure {
    InvalidArgument::new(what, value, reason).into()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let limit = match &error {
            Error::Limit(limit) => Some(*limit),
            _ => None,
        };
        Self { kind: error.kind(), message: error.to_string(), limit }
    }
}

impl From<InvalidArgument> for Failure {
    fn from(error: InvalidArgument) -> Self {
        Error::from(error).into()
    }
}

/// Making a PHP value of a result failed.
impl From<ext_php_rs::error::Error> for Failure {
    fn from(error: ext_php_rs::error::Error) -> Self {
        Self::new(ErrorKind::Internal, format!("the result cannot be given to PHP: {error}; please report this"))
    }
}

impl From<Failure> for PhpException {
    fn from(failure: Failure) -> Self {
        // SAFETY: a class entry lives from MINIT to MSHUTDOWN, and PHP code, which alone makes failures, runs between them.
        let class: &'static ClassEntry =
            unsafe { CLASS.load(Ordering::Acquire).as_ref() }.unwrap_or_else(|| ce::exception());
        let code = failure.kind as i32;
        match object(class, &failure) {
            Ok(object) => PhpException::new(failure.message, code, class).with_object(object),
            Err(_) => PhpException::new(failure.message, code, class),
        }
    }
}

/// The exception object, not thrown yet.
fn object(class: &'static ClassEntry, failure: &Failure) -> ext_php_rs::error::Result<Zval> {
    let mut object = ZendObject::new(class);
    // SAFETY: reads a pointer that the engine sets once, before any module starts.
    let base = unsafe { zend_ce_exception };
    let own = ptr::from_ref(class).cast_mut();
    let mut set = |scope: *mut ClassEntry, name: &str, value: Zval| {
        let mut value = value;
        // SAFETY: the object is alive and of a class that has the property in this scope; name and value outlive the call,
        // which takes a reference of its own to the value.
        unsafe { zend_update_property(scope, &raw mut *object, name.as_ptr(), name.len(), &raw mut value) };
    };
    set(base, "message", failure.message.as_str().into_zval(false)?);
    set(base, "code", i64::from(failure.kind as i32).into_zval(false)?);
    if let Some(limit) = &failure.limit {
        set(own, "limit", limit.limit.name().into_zval(false)?);
        set(own, "maximum", int(limit.maximum).into_zval(false)?);
        set(own, "actual", int(limit.actual).into_zval(false)?);
    }
    object.into_zval(false)
}

/// Registers `Failure` and `FailureKind`. For MINIT.
pub(crate) fn register() -> ext_php_rs::error::Result<()> {
    let mut kinds = ClassBuilder::new("McpState\\Native\\FailureKind").flags(ClassFlags::Final);
    for (name, kind) in KINDS {
        kinds = kinds.constant(name, i64::from(kind as i32), &[], ext_php_rs::flags::ConstantFlags::Public)?;
    }
    kinds.registration(|_, _| {}).register()?;

    ClassBuilder::new(NAME)
        // SAFETY: SPL is part of PHP and has started before any extension.
        .extends((|| unsafe { &*spl_ce_RuntimeException }, "\\RuntimeException"))
        .flags(ClassFlags::Final)
        .registration(|class, _| {
            let mut empty = Zval::new();
            empty.set_zend_string(ZendStr::new_interned("", true));
            declare(class, "limit", empty, DataType::String);
            for name in ["maximum", "actual"] {
                let mut zero = Zval::new();
                zero.set_long(0);
                declare(class, name, zero, DataType::Long);
            }
            CLASS.store(class, Ordering::Release);
        })
        .register()
}

fn declare(class: &mut ClassEntry, name: &str, mut default: Zval, data_type: DataType) {
    let name = ZendStr::new_interned(name, true);
    let Some(property_type) = ZendType::empty_from_type(data_type, false, false, false) else { return };
    // SAFETY: class, name and default are valid for the call; the engine keeps the interned name and copies the default, which
    // is a number or an interned string and so needs no counting.
    unsafe {
        zend_declare_typed_property(
            class,
            name.as_ptr().cast_mut(),
            &raw mut default,
            PropertyFlags::Public.bits() as i32,
            ptr::null_mut(),
            property_type,
        );
    }
}
