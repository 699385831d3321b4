# The names phpize's Makefile expects: modules/mcp_state.so, and an archive that says so. `+` lends make's jobs to cargo.

$(phplibdir)/mcp_state.so: $(MCP_STATE_SOURCES)
	+cd "$(MCP_STATE_ROOT)" && PHP="$(MCP_STATE_PHP)" PHP_CONFIG="$(MCP_STATE_PHP_CONFIG)" "$(MCP_STATE_CARGO)" build \
		--locked --profile $(MCP_STATE_PROFILE) --package mcp-state-php --target-dir "$(MCP_STATE_TARGET)"
	@mkdir -p "$(phplibdir)"
	cp "$(MCP_STATE_LIBRARY)" "$@.new"
	@mv "$@.new" "$@"

# A rule of its own: `make install` removes the archive and keeps the library.
$(phplibdir)/mcp_state.la: $(phplibdir)/mcp_state.so
	@echo "dlname='mcp_state.so'" >"$@"
