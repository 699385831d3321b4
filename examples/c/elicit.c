/*
 * A question to the client, and its answer in another process.
 *
 *     elicit ask DSN                       asks, prints session and message, waits, prints the answer
 *     elicit answer DSN SESSION ID JSON    delivers an answer, prints whether it was in time
 *
 * In an MCP server, the first is a tool that asks on its own stream, and the second is the POST with the client's response.
 *
 *     cc -o elicit elicit.c $(pkg-config --cflags --libs mcp_state)
 */
#include <inttypes.h>
#include <mcp_state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Any failure ends this program; a server would map the status to a reply. */
static void check(mcp_state_status status, const mcp_state_error *error)
{
    if (status != MCP_STATE_OK) {
        fprintf(stderr, "elicit: %s (status %d)\n", error->text, (int)status);
        exit(1);
    }
}

static void print_line(const uint8_t *text, size_t length)
{
    fwrite(text, 1, length, stdout);
    putchar('\n');
    fflush(stdout);
}

static mcp_state_engine *open_store(const char *dsn)
{
    mcp_state_error error;
    mcp_state_engine *engine;

    if (mcp_state_abi_version() != MCP_STATE_ABI_VERSION) {
        fprintf(stderr, "elicit: the library has ABI version %" PRIu32 "\n", mcp_state_abi_version());
        exit(1);
    }
    check(mcp_state_engine_open(dsn, strlen(dsn), &engine, &error), &error);
    return engine;
}

static int ask(const char *dsn)
{
    static const char question[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Go on?\"}}";
    mcp_state_error error;
    mcp_state_engine *engine = open_store(dsn);
    mcp_state_session *session;
    mcp_state_buffer *text;
    mcp_state_messages *messages;
    mcp_state_claim_state state = MCP_STATE_CLAIM_WAITING;
    char owner[MCP_STATE_OWNER_SIZE];
    const size_t owner_len = sizeof owner - 1;
    int64_t id, cursor = 0, left, dropped, abandoned;
    bool ended;

    /* A session with a random id, and an owner: the stream this process serves. */
    check(mcp_state_create_session(engine, NULL, 0, NULL, NULL, 0, &session, &error), &error);
    check(mcp_state_attach(session, MCP_STATE_OWNER_STREAM, NULL, owner, sizeof owner, &error), &error);
    check(mcp_state_session_id(session, &text, &error), &error);
    print_line(mcp_state_buffer_data(text), mcp_state_buffer_len(text));
    mcp_state_buffer_free(text);

    /* One transaction gives the question its id, registers it and queues it. The queued message goes to the client. */
    check(mcp_state_send_request(session, owner, owner_len, question, sizeof question - 1, 60000, "", 0, &id, &error), &error);
    check(mcp_state_take_outgoing(session, owner, owner_len, 100, &messages, &error), &error);
    for (size_t i = 0; i < mcp_state_messages_len(messages); ++i) {
        const mcp_state_message *message = mcp_state_messages_at(messages, i);
        print_line(message->text, message->text_len);
    }
    mcp_state_messages_free(messages);

    /* Each wait lasts at most a second, so that a server can send keep-alives. The answer ends a wait at once. */
    while (state == MCP_STATE_CLAIM_WAITING) {
        mcp_state_wait_outcome outcome;
        check(mcp_state_wait(session, owner, owner_len, MCP_STATE_INTEREST_RESOLUTION, cursor, 1000, &outcome, &cursor, &error),
              &error);
        check(mcp_state_claim(session, owner, owner_len, id, &state, &text, &left, &error), &error);
    }
    if (state == MCP_STATE_CLAIM_ANSWERED) {
        print_line(mcp_state_buffer_data(text), mcp_state_buffer_len(text));
        mcp_state_buffer_free(text);
    } else {
        fprintf(stderr, "elicit: no answer (%d)\n", (int)state);
    }

    check(mcp_state_detach(session, owner, owner_len, &ended, &dropped, &abandoned, &error), &error);
    mcp_state_session_free(session);
    mcp_state_engine_free(engine);
    return state == MCP_STATE_CLAIM_ANSWERED ? 0 : 1;
}

static int answer(const char *dsn, const char *id, const char *request, const char *json)
{
    static const char *const became[] = {
        "delivered", "unknown", "finished", "timed out", "already answered", "cancelled", "abandoned",
    };
    mcp_state_error error;
    mcp_state_engine *engine = open_store(dsn);
    mcp_state_session *session;
    mcp_state_delivery delivery;

    check(mcp_state_open_session(engine, id, strlen(id), NULL, 0, &session, &error), &error);
    if (session == NULL) {
        fprintf(stderr, "elicit: there is no session %s\n", id);
        return 1;
    }
    check(mcp_state_deliver_response(session, strtoll(request, NULL, 10), json, strlen(json), &delivery, &error), &error);
    puts(became[delivery]);

    mcp_state_session_free(session);
    mcp_state_engine_free(engine);
    return delivery == MCP_STATE_DELIVERED ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "ask") == 0) {
        return ask(argv[2]);
    }
    if (argc == 6 && strcmp(argv[1], "answer") == 0) {
        return answer(argv[2], argv[3], argv[4], argv[5]);
    }
    fputs("usage: elicit ask DSN | elicit answer DSN SESSION ID JSON\n", stderr);
    return 2;
}
