//! PHP values in and out: typed arguments that say what is wrong with them, lists and maps for results.
//!
//! A value of the wrong PHP type is a `TypeError`, as of any PHP function; a value of the right type that no store would accept
//! is a [`Failure`] with `INVALID_ARGUMENT` that names the argument. Strings come in without a copy and go out with one.

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::{FromZval, IntoZval, StubLiteral};
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendHashTable, Zval};
use mcp_state::{OwnerToken, RequestId};

use crate::failure::{Failure, invalid};

/// A PHP list or map.
pub(crate) type Array = ZBox<ZendHashTable>;

/// A string argument; whether it is UTF-8 is said when it is used.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(Result<&'a str, &'a [u8]>);

impl<'a> Text<'a> {
    /// The text of the argument called `what`.
    pub(crate) fn get(self, what: &'static str) -> Result<&'a str, Failure> {
        self.0.map_err(|bytes| invalid(what, &String::from_utf8_lossy(bytes), "it must be UTF-8"))
    }

    /// The owner that the argument names.
    pub(crate) fn owner(self) -> Result<OwnerToken, Failure> {
        Ok(OwnerToken::parse(self.get("owner token")?)?)
    }
}

impl<'a> FromZval<'a> for Text<'a> {
    const TYPE: DataType = DataType::String;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        let string = zval.zend_str()?;
        Some(Self(string.as_str().map_err(|_| string.as_bytes())))
    }
}

impl From<&'static str> for Text<'_> {
    fn from(text: &'static str) -> Self {
        Self(Ok(text))
    }
}

impl StubLiteral for Text<'_> {
    fn stub_literal(&self) -> String {
        self.0.unwrap_or_default().stub_literal()
    }
}

/// The text of an optional argument.
pub(crate) fn optional<'a>(text: Option<Text<'a>>, what: &'static str) -> Result<Option<&'a str>, Failure> {
    text.map(|text| text.get(what)).transpose()
}

/// A string or null that must be given; `classes` declares it so.
pub(crate) struct Nullable<'a>(Option<Text<'a>>);

impl<'a> Nullable<'a> {
    pub(crate) fn get(self, what: &'static str) -> Result<Option<&'a str>, Failure> {
        optional(self.0, what)
    }
}

impl<'a> FromZval<'a> for Nullable<'a> {
    const TYPE: DataType = DataType::String;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        Option::from_zval(zval).map(Self)
    }
}

/// The id of a client's request, `int|string`; `classes` declares it so.
pub(crate) enum RpcId<'a> {
    Int(i64),
    Text(Text<'a>),
}

impl RpcId<'_> {
    pub(crate) fn get(&self) -> Result<RequestId, Failure> {
        Ok(match self {
            RpcId::Int(id) => RequestId::from(*id),
            RpcId::Text(id) => RequestId::from(id.get("request id")?),
        })
    }
}

impl<'a> FromZval<'a> for RpcId<'a> {
    const TYPE: DataType = DataType::Mixed;

    fn from_zval(zval: &'a Zval) -> Option<Self> {
        match zval.long() {
            Some(id) => Some(RpcId::Int(id)),
            None => Text::from_zval(zval).map(RpcId::Text),
        }
    }
}

/// A number that must not be negative.
pub(crate) fn unsigned(what: &'static str, number: i64) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| invalid(what, &number.to_string(), "it must not be negative"))
}

/// How many of something, at most.
pub(crate) fn count(what: &'static str, number: i64) -> Result<usize, Failure> {
    Ok(usize::try_from(unsigned(what, number)?).unwrap_or(usize::MAX))
}

/// A number as PHP has it. What the engine counts stays far below the limit.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The change that the element at `index` of `patch`'s list asks for: `[key, JSON text or null]`.
pub(crate) fn change((index, element): (usize, &Zval)) -> Result<(&str, Option<&str>), Failure> {
    let wrong = || {
        invalid(
            "change",
            &(index + 1).to_string(),
            "it must be a list of a key and a JSON text, or null to remove the key",
        )
    };
    let pair = element.dereference().array().filter(|pair| pair.len() == 2).ok_or_else(wrong)?;
    let at = |index| pair.get_index(index).map(Zval::dereference);
    let key = at(0).and_then(Text::from_zval).ok_or_else(wrong)?.get("attribute key")?;
    let json = at(1).filter(|json| json.is_null() || json.is_string()).ok_or_else(wrong)?;
    Ok((key, optional(Text::from_zval(json), "attribute value")?))
}

/// A list with one element for each of `items`.
pub(crate) fn list<T, V: IntoZval>(items: Vec<T>, element: impl Fn(T) -> Result<V, Failure>) -> Result<Array, Failure> {
    let mut list = ZendHashTable::with_capacity(items.len() as u32);
    for item in items {
        list.push(element(item)?)?;
    }
    Ok(list)
}

/// The list of the given values.
macro_rules! array {
    ($($value:expr),+ $(,)?) => {{
        let mut list = ext_php_rs::types::ZendHashTable::new();
        $(list.push($value)?;)+
        list
    }};
}

/// The map of the given names and values.
macro_rules! map {
    ($($name:expr => $value:expr),+ $(,)?) => {{
        let mut map = ext_php_rs::types::ZendHashTable::new();
        $(map.insert($name, $value)?;)+
        map
    }};
}

pub(crate) use {array, map};

/// The map of names to numbers.
pub(crate) fn numbers(pairs: impl IntoIterator<Item = (&'static str, u64)>) -> Result<Array, Failure> {
    let mut map = ZendHashTable::new();
    for (name, number) in pairs {
        map.insert(name, int(number))?;
    }
    Ok(map)
}
