dnl Builds the extension the usual way: phpize && ./configure && make && make test && make install.
dnl
dnl `make` calls cargo when a source is newer than what it built, and `make install` only copies: root needs no Rust. There is
dnl no C file: the module stands in PHP_MODULES under the name of a libtool archive of one line, which is all that phpize's
dnl Makefile reads of it.

PHP_ARG_ENABLE([mcp_state],
  [whether to build mcp_state],
  [AS_HELP_STRING([--enable-mcp_state], [Build mcp_state])],
  [yes])

PHP_ARG_WITH([cargo],
  [whether a cargo is named],
  [AS_HELP_STRING([--with-cargo=PATH], [The cargo to build with; by default $CARGO, or the one on PATH])],
  [no],
  [no])

PHP_ARG_WITH([cargo-profile],
  [which profile to build with],
  [AS_HELP_STRING([--with-cargo-profile=NAME], [release, or dev to build faster [release]])],
  [release],
  [no])

if test "$PHP_MCP_STATE" != "no"; then
  dnl The engine is two folders up: the whole repository is needed, not this folder alone.
  MCP_STATE_EXT=`cd "$srcdir" && pwd -P`
  MCP_STATE_ROOT=`cd "$MCP_STATE_EXT/../.." && pwd -P`
  AS_IF([test ! -f "$MCP_STATE_ROOT/Cargo.lock" || test ! -f "$MCP_STATE_ROOT/src/engine.rs"],
    [AC_MSG_ERROR([$MCP_STATE_ROOT does not hold the whole of mcp-state; run phpize in php/ext of its repository])])

  AC_MSG_CHECKING([for cargo])
  AS_CASE([$PHP_CARGO],
    [no|yes], [MCP_STATE_CARGO=`command -v "${CARGO:-cargo}" || command -v "$HOME/.cargo/bin/cargo"`],
    [MCP_STATE_CARGO=`command -v "$PHP_CARGO"`])
  AS_IF([test -z "$MCP_STATE_CARGO"],
    [AC_MSG_ERROR([not found; install Rust, or name it with --with-cargo=PATH. docs/install.md names ways without Rust])])
  AC_MSG_RESULT([$MCP_STATE_CARGO])

  AC_MSG_CHECKING([whether Rust is new enough])
  MCP_STATE_RUST_LEAST=`$SED -n 's/^rust-version = "\(.*\)"/\1/p' "$MCP_STATE_ROOT/Cargo.toml"`
  MCP_STATE_RUST=`cd "$MCP_STATE_ROOT" && "$MCP_STATE_CARGO" --version | cut -d ' ' -f 2`
  AS_VERSION_COMPARE([$MCP_STATE_RUST], [$MCP_STATE_RUST_LEAST],
    [AC_MSG_ERROR([$MCP_STATE_CARGO is $MCP_STATE_RUST, and $MCP_STATE_RUST_LEAST or later is needed])])
  AC_MSG_RESULT([$MCP_STATE_RUST])

  dnl ext-php-rs asks this PHP for its API, and takes its headers from this php-config: both by full path.
  MCP_STATE_PHP_CONFIG=`command -v "$PHP_CONFIG"`
  MCP_STATE_PHP=$PHP_EXECUTABLE
  AS_IF([test ! -x "$MCP_STATE_PHP"], [MCP_STATE_PHP=`"$MCP_STATE_PHP_CONFIG" --prefix`/bin/php])
  AS_IF([test ! -x "$MCP_STATE_PHP"],
    [AC_MSG_ERROR([the php that belongs to $MCP_STATE_PHP_CONFIG was not found; name another with --with-php-config])])

  dnl A folder for each PHP: ext-php-rs does not notice when the same path holds another. Outside of this one, where `make
  dnl clean` removes every library it finds.
  MCP_STATE_FLAVOUR=nts
  AS_IF([grep -q '^#define ZTS 1' "$phpincludedir/main/php_config.h"], [MCP_STATE_FLAVOUR=zts])
  AS_IF([grep -q '^#define ZEND_DEBUG 1' "$phpincludedir/main/php_config.h"], [MCP_STATE_FLAVOUR=$MCP_STATE_FLAVOUR-debug])
  MCP_STATE_TARGET=${CARGO_TARGET_DIR:-$MCP_STATE_ROOT/target/php-`"$MCP_STATE_PHP_CONFIG" --phpapi`-$MCP_STATE_FLAVOUR}

  MCP_STATE_PROFILE=$PHP_CARGO_PROFILE
  AS_CASE([$MCP_STATE_PROFILE],
    [yes|no|release], [MCP_STATE_PROFILE=release; MCP_STATE_BUILT=release],
    [dev], [MCP_STATE_BUILT=debug],
    [MCP_STATE_BUILT=$MCP_STATE_PROFILE])
  AS_CASE([$host_os], [darwin*], [MCP_STATE_SUFFIX=dylib], [MCP_STATE_SUFFIX=so])
  MCP_STATE_LIBRARY=$MCP_STATE_TARGET/$MCP_STATE_BUILT/libmcp_state.$MCP_STATE_SUFFIX

  MCP_STATE_SOURCES=`find "$MCP_STATE_ROOT/src" "$MCP_STATE_EXT/src" -name '*.rs' | sort | tr '\n' ' '`
  MCP_STATE_SOURCES="$MCP_STATE_SOURCES $MCP_STATE_ROOT/Cargo.toml $MCP_STATE_ROOT/Cargo.lock $MCP_STATE_EXT/Cargo.toml $MCP_STATE_EXT/build.rs"

  PHP_SUBST([MCP_STATE_ROOT])
  PHP_SUBST([MCP_STATE_CARGO])
  PHP_SUBST([MCP_STATE_PHP])
  PHP_SUBST([MCP_STATE_PHP_CONFIG])
  PHP_SUBST([MCP_STATE_TARGET])
  PHP_SUBST([MCP_STATE_PROFILE])
  PHP_SUBST([MCP_STATE_LIBRARY])
  PHP_SUBST([MCP_STATE_SOURCES])
  PHP_MODULES='$(phplibdir)/mcp_state.la'
  PHP_SUBST([PHP_MODULES])
  PHP_ADD_BUILD_DIR([modules])
  PHP_ADD_MAKEFILE_FRAGMENT([$abs_srcdir/Makefile.frag], [$abs_srcdir], [.])
fi
