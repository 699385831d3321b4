/*
 * mcp-state: session state of MCP servers, shared by concurrent processes. The C library.
 *
 * Each operation is one transaction: it is applied in full or not at all (G8), also if a process is killed, and concurrent
 * operations behave as if executed one at a time (G1). G1 to G12 are the guarantees of docs/design.md, section 3. docs/install.md says how to
 * install the library, and examples/c/ shows a program.
 *
 * What holds for all functions:
 *
 * - They return a status. MCP_STATE_OK: the out-parameters are set. Otherwise no out-parameter was written, nothing was
 *   changed (but for MCP_STATE_OUTCOME_UNKNOWN), and *error, unless `error` is NULL, describes the error. An out-parameter must not
 *   be NULL.
 * - Texts are pairs of pointer and length, UTF-8, without a NUL at the end; a NULL pointer is an absent text where that is allowed.
 *   Durations are milliseconds, sizes bytes; numbers must not be negative.
 * - If the documentation of an `*out_` parameter names a free function, the caller owns the result and calls that function once.
 *   A free function accepts NULL.
 * - An owner is named by the token that mcp_state_attach() gave, in any thread or process.
 * - Functions may be called by several threads at once, on one handle too, as long as none frees it. After a fork, the child may
 *   use its parent's handles. No function calls back, keeps a pointer to an argument, or starts a thread.
 * - Safety: a handle was given by this library and was not freed; a pointer is readable, or writable for an out-parameter, until
 *   the function returns.
 * - Any function on a store may fail with MCP_STATE_INVALID_ARGUMENT, MCP_STATE_STORE_UNAVAILABLE, MCP_STATE_STORE_CORRUPT,
 *   MCP_STATE_OUTCOME_UNKNOWN or MCP_STATE_INTERNAL, and any on a session with MCP_STATE_SESSION_NOT_FOUND too. Each function
 *   lists its other errors.
 */

#ifndef MCP_STATE_H
#define MCP_STATE_H

/* Written by cbindgen from capi/; do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of the ABI that this header describes; `SONAME` ends with it. A caller that loads the library at run time compares
 * it with mcp_state_abi_version().
 */
#define MCP_STATE_ABI_VERSION 1

/**
 * Bytes that an owner's token takes, its NUL included: 32 hexadecimal digits.
 */
#define MCP_STATE_OWNER_SIZE 33

/**
 * In place of a question's time: the store's `request_timeout_ms`.
 */
#define MCP_STATE_TIMEOUT_OF_STORE -1

/**
 * What a function returns. The numbers never change meaning.
 */
typedef enum mcp_state_status {
  /**
   * Done; the out-parameters are set.
   */
  MCP_STATE_OK = 0,
  /**
   * Correct the call: the text names the argument, its value and what is allowed.
   */
  MCP_STATE_INVALID_ARGUMENT = 1,
  /**
   * Correct the DSN.
   */
  MCP_STATE_INVALID_DSN = 2,
  /**
   * Refuse the client's request, or raise the limit.
   */
  MCP_STATE_LIMIT_EXCEEDED = 3,
  /**
   * The session was destroyed, has expired, was evicted, or belongs to another principal: answer 404.
   */
  MCP_STATE_SESSION_NOT_FOUND = 4,
  /**
   * The owner was released: attach again.
   */
  MCP_STATE_OWNER_EXPIRED = 5,
  /**
   * Answer 503; the text says what to repair.
   */
  MCP_STATE_STORE_UNAVAILABLE = 6,
  /**
   * Answer 503; operations that free space still succeed (G10).
   */
  MCP_STATE_STORE_FULL = 7,
  /**
   * Another version uses the store.
   */
  MCP_STATE_STORE_INCOMPATIBLE = 8,
  /**
   * The store's files are damaged.
   */
  MCP_STATE_STORE_CORRUPT = 9,
  /**
   * It is unknown whether the operation took effect: read the session before you repeat it.
   */
  MCP_STATE_OUTCOME_UNKNOWN = 10,
  /**
   * A bug of this library.
   */
  MCP_STATE_INTERNAL = 11,
} mcp_state_status;

/**
 * The result of a cancellation, of a pending request or of one in flight.
 */
typedef enum mcp_state_cancel_outcome {
  /**
   * It is cancelled now.
   */
  MCP_STATE_CANCEL_CANCELLED = 1,
  /**
   * No request has this id.
   */
  MCP_STATE_CANCEL_UNKNOWN = 2,
  /**
   * Several requests in flight have this id; none was touched.
   */
  MCP_STATE_CANCEL_AMBIGUOUS = 3,
  /**
   * It has an answer, to be claimed.
   */
  MCP_STATE_CANCEL_ALREADY_ANSWERED = 4,
  /**
   * It has timed out.
   */
  MCP_STATE_CANCEL_TIMED_OUT = 5,
  /**
   * It belongs to another owner.
   */
  MCP_STATE_CANCEL_NOT_OWNER = 6,
  /**
   * It was cancelled before.
   */
  MCP_STATE_CANCEL_ALREADY_CANCELLED = 7,
} mcp_state_cancel_outcome;

/**
 * The state of a pending request.
 */
typedef enum mcp_state_claim_state {
  /**
   * Answered in time.
   */
  MCP_STATE_CLAIM_ANSWERED = 1,
  /**
   * Its deadline has not passed.
   */
  MCP_STATE_CLAIM_WAITING = 2,
  /**
   * Its deadline passed without an answer.
   */
  MCP_STATE_CLAIM_TIMED_OUT = 3,
  /**
   * Its owner cancelled it.
   */
  MCP_STATE_CLAIM_CANCELLED = 4,
  /**
   * It belongs to another owner.
   */
  MCP_STATE_CLAIM_NOT_OWNER = 5,
  /**
   * No request has this id, or it was claimed.
   */
  MCP_STATE_CLAIM_UNKNOWN = 6,
} mcp_state_claim_state;

/**
 * The reason for the end of a wait.
 */
typedef enum mcp_state_wait_outcome {
  /**
   * One of the events happened.
   */
  MCP_STATE_WAIT_READY = 1,
  /**
   * The slice or the time passed.
   */
  MCP_STATE_WAIT_DEADLINE = 2,
  /**
   * The session has ended.
   */
  MCP_STATE_WAIT_DESTROYED = 3,
  /**
   * A signal arrived: handle it and wait again.
   */
  MCP_STATE_WAIT_INTERRUPTED = 4,
} mcp_state_wait_outcome;

/**
 * The result of a delivery: delivered, or late and discarded (G4).
 */
typedef enum mcp_state_delivery {
  /**
   * Its request was waiting, and its owner is woken.
   */
  MCP_STATE_DELIVERED = 0,
  /**
   * No request had this id.
   */
  MCP_STATE_LATE_UNKNOWN = 1,
  /**
   * Its request was claimed.
   */
  MCP_STATE_LATE_FINISHED = 2,
  /**
   * Its request has timed out.
   */
  MCP_STATE_LATE_TIMED_OUT = 3,
  /**
   * Its request has an answer; the first one counts.
   */
  MCP_STATE_LATE_ALREADY_ANSWERED = 4,
  /**
   * Its request was cancelled.
   */
  MCP_STATE_LATE_CANCELLED = 5,
  /**
   * Its request's owner has ended.
   */
  MCP_STATE_LATE_ABANDONED = 6,
} mcp_state_delivery;

/**
 * The kind of an owner.
 */
typedef enum mcp_state_owner_kind {
  /**
   * A stream: it also takes the session's broadcasts.
   */
  MCP_STATE_OWNER_STREAM = 1,
  /**
   * One reply.
   */
  MCP_STATE_OWNER_REPLY = 2,
} mcp_state_owner_kind;

/**
 * The events that an owner waits for, to be combined by addition.
 */
typedef enum mcp_state_interest {
  /**
   * A pending request was answered, timed out or was cancelled.
   */
  MCP_STATE_INTEREST_RESOLUTION = 1,
  /**
   * A message is queued.
   */
  MCP_STATE_INTEREST_MESSAGE = 2,
  /**
   * The client cancelled a request in flight.
   */
  MCP_STATE_INTEREST_CANCELLATION = 4,
} mcp_state_interest;

/**
 * The policy for a request whose id is already in flight.
 */
typedef enum mcp_state_policy {
  /**
   * Both are served, and each keeps its own answer (G6).
   */
  MCP_STATE_POLICY_ISOLATE = 1,
  /**
   * The second is refused.
   */
  MCP_STATE_POLICY_REJECT = 2,
} mcp_state_policy;

/**
 * Bytes that the caller owns: UTF-8, no NUL at the end, NULs in it possible. To be freed with mcp_state_buffer_free().
 */
typedef struct mcp_state_buffer mcp_state_buffer;

/**
 * A handle of an open store. To be freed with mcp_state_engine_free(); the store stays open.
 */
typedef struct mcp_state_engine mcp_state_engine;

/**
 * Ids of requests that the caller owns. To be freed with mcp_state_ids_free().
 */
typedef struct mcp_state_ids mcp_state_ids;

/**
 * Messages that the caller owns, in order. To be freed with mcp_state_messages_free().
 */
typedef struct mcp_state_messages mcp_state_messages;

/**
 * Pending requests that the caller owns. To be freed with mcp_state_requests_free().
 */
typedef struct mcp_state_requests mcp_state_requests;

/**
 * A session as one process holds it. Every operation of a session that was destroyed, has expired or was evicted fails with
 * MCP_STATE_SESSION_NOT_FOUND, also when a new session has taken its id (G7). To be freed with mcp_state_session_free(), which
 * does not end the session.
 */
typedef struct mcp_state_session mcp_state_session;

/**
 * The description of an error, in the caller's memory. A function that fails writes it; one that succeeds leaves it unchanged. It
 * need not be initialised.
 */
typedef struct mcp_state_error {
  /**
   * What the function returned.
   */
  enum mcp_state_status status;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the limit; else 0.
   */
  int64_t maximum;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the value that would exceed it; else 0.
   */
  int64_t actual;
  /**
   * With MCP_STATE_LIMIT_EXCEEDED, the limit's name as in a DSN (`max_message_bytes`); else empty. NUL-terminated.
   */
  char limit[40];
  /**
   * One sentence that names the wrong value and says what to do: UTF-8, NUL-terminated, cut where it is too long.
   */
  char text[1024];
} mcp_state_error;

/**
 * One change of mcp_state_patch().
 */
typedef struct mcp_state_change {
  /**
   * The dotted key.
   */
  const char *key;
  /**
   * Bytes of the key.
   */
  size_t key_len;
  /**
   * The JSON text to set; NULL removes the key.
   */
  const char *json;
  /**
   * Bytes of the JSON text.
   */
  size_t json_len;
} mcp_state_change;

/**
 * One message of a list.
 */
typedef struct mcp_state_message {
  /**
   * Its sequence number among the owner's messages, or its number in the topic.
   */
  int64_t number;
  /**
   * The message: UTF-8, not NUL-terminated.
   */
  const uint8_t *text;
  /**
   * Bytes of the message.
   */
  size_t text_len;
  /**
   * What was kept with it; empty for a message of a topic.
   */
  const uint8_t *context;
  /**
   * Bytes of the context.
   */
  size_t context_len;
} mcp_state_message;

/**
 * One pending request of a list.
 */
typedef struct mcp_state_request {
  /**
   * Its id.
   */
  int64_t id;
  /**
   * What a claim by its owner would say now.
   */
  enum mcp_state_claim_state state;
  /**
   * Milliseconds until its deadline, 0 unless it is waiting.
   */
  int64_t left_ms;
  /**
   * Its method: UTF-8, not NUL-terminated.
   */
  const uint8_t *method;
  /**
   * Bytes of the method.
   */
  size_t method_len;
} mcp_state_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library's ABI. It rises when a function or a number changes or goes; what is only added leaves it.
 */
uint32_t mcp_state_abi_version(void);

/**
 * The version of the library, such as "0.1.0": NUL-terminated, never freed.
 */
const char *mcp_state_version(void);

/**
 * Reads an attribute: `client` is all that is stored under `client.…`, `client.name` just that.
 *
 * `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it is absent.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_get(const struct mcp_state_session *session,
                                    const char *key,
                                    size_t key_len,
                                    struct mcp_state_buffer **out_json,
                                    struct mcp_state_error *error);

/**
 * Reads all attributes of one moment.
 *
 * `*out_json`: a JSON object, to be freed with mcp_state_buffer_free().
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_all(const struct mcp_state_session *session,
                                    struct mcp_state_buffer **out_json,
                                    struct mcp_state_error *error);

/**
 * Sets an attribute to a JSON text. It replaces what is below the key, and never disturbs keys it does not name.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_set(const struct mcp_state_session *session,
                                    const char *key,
                                    size_t key_len,
                                    const char *json,
                                    size_t json_len,
                                    struct mcp_state_error *error);

/**
 * Removes an attribute and all below it.
 *
 * `*out_removed`: whether there was anything.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_remove(const struct mcp_state_session *session,
                                       const char *key,
                                       size_t key_len,
                                       bool *out_removed,
                                       struct mcp_state_error *error);

/**
 * Reads an attribute and removes it, at once: of several callers one gets it.
 *
 * `*out_json`: the value's JSON text, to be freed with mcp_state_buffer_free(); NULL when it was absent.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_take(const struct mcp_state_session *session,
                                     const char *key,
                                     size_t key_len,
                                     struct mcp_state_buffer **out_json,
                                     struct mcp_state_error *error);

/**
 * Sets an attribute unless it has a value that is not null.
 *
 * `*out_put`: whether it was set.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_put_if_absent(const struct mcp_state_session *session,
                                              const char *key,
                                              size_t key_len,
                                              const char *json,
                                              size_t json_len,
                                              bool *out_put,
                                              struct mcp_state_error *error);

/**
 * Sets an attribute if its value equals `expected`, as JSON values.
 *
 * `expected`: NULL: absent or null. `json`: the new value; NULL: remove it. `*out_set`: whether it did.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_compare_and_set(const struct mcp_state_session *session,
                                                const char *key,
                                                size_t key_len,
                                                const char *expected,
                                                size_t expected_len,
                                                const char *json,
                                                size_t json_len,
                                                bool *out_set,
                                                struct mcp_state_error *error);

/**
 * Applies several changes in order, all at once: others see none or all of them.
 *
 * `changes`: an array of `count` changes; NULL when there are none.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, and then nothing was changed.
 *
 * # Safety
 *
 * As for all functions; `changes` is NULL or readable for `count` elements.
 */
enum mcp_state_status mcp_state_patch(const struct mcp_state_session *session,
                                      const struct mcp_state_change *changes,
                                      size_t count,
                                      struct mcp_state_error *error);

/**
 * The buffer's bytes, good until it is freed; NULL for a NULL buffer.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed.
 */
const uint8_t *mcp_state_buffer_data(const struct mcp_state_buffer *buffer);

/**
 * How many bytes the buffer has; 0 for a NULL buffer.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed.
 */
size_t mcp_state_buffer_len(const struct mcp_state_buffer *buffer);

/**
 * Frees a buffer; NULL is none.
 *
 * # Safety
 *
 * The buffer is NULL or was not freed, and no thread uses its bytes any more.
 */
void mcp_state_buffer_free(struct mcp_state_buffer *buffer);

/**
 * Appends a message to a topic and wakes its readers in all processes. The topic keeps a bounded number of messages
 * and drops the oldest.
 *
 * `*out_number`: the message's number; those of one topic rise by one.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_publish(const struct mcp_state_engine *engine,
                                        const char *topic,
                                        size_t topic_len,
                                        const char *message,
                                        size_t message_len,
                                        int64_t *out_number,
                                        struct mcp_state_error *error);

/**
 * Returns the cursor of a new reader of a topic.
 *
 * `*out_cursor`: the number of its newest message, 0 for an empty topic.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cursor(const struct mcp_state_engine *engine,
                                       const char *topic,
                                       size_t topic_len,
                                       int64_t *out_cursor,
                                       struct mcp_state_error *error);

/**
 * Messages of a topic after `cursor`, at most `max`, oldest first: the same in the same order for all readers. None is removed.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free(). `*out_cursor`: from where to read on. `*out_missed`: how many
 * were dropped before this reader saw them.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_since(const struct mcp_state_engine *engine,
                                      const char *topic,
                                      size_t topic_len,
                                      int64_t cursor,
                                      int64_t max,
                                      struct mcp_state_messages **out_messages,
                                      int64_t *out_cursor,
                                      int64_t *out_missed,
                                      struct mcp_state_error *error);

/**
 * Waits for a message of a topic after `cursor`: one slice, at most `wait_ms` and at most a second. To be called in a loop. A
 * signal ends it.
 *
 * `*out_there`: whether a message was found.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_wait_since(const struct mcp_state_engine *engine,
                                           const char *topic,
                                           size_t topic_len,
                                           int64_t cursor,
                                           int64_t wait_ms,
                                           bool *out_there,
                                           struct mcp_state_error *error);

/**
 * Marks a single-use key, such as a nonce, as used.
 *
 * `*out_first`: true for exactly one caller within `ttl_ms`, among all processes.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_consume_once(const struct mcp_state_engine *engine,
                                             const char *key,
                                             size_t key_len,
                                             int64_t ttl_ms,
                                             bool *out_first,
                                             struct mcp_state_error *error);

/**
 * Opens the store that a DSN names, and makes the store if it does not exist: `shm://NAME`, `file:///DIRECTORY` or `memory://`,
 * with options as a query (`?ttl_ms=600000&max_sessions=500`). Handles of one process and DSN share one store, which stays open.
 *
 * `*out_engine`: the store, to be freed with mcp_state_engine_free().
 *
 * Fails with MCP_STATE_INVALID_DSN, MCP_STATE_STORE_UNAVAILABLE, MCP_STATE_STORE_INCOMPATIBLE, MCP_STATE_STORE_CORRUPT.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_engine_open(const char *dsn,
                                            size_t dsn_len,
                                            struct mcp_state_engine **out_engine,
                                            struct mcp_state_error *error);

/**
 * Frees the handle of a store, or does nothing for NULL. Sessions of the handle stay usable.
 *
 * # Safety
 *
 * The handle is NULL or was not freed.
 */
void mcp_state_engine_free(struct mcp_state_engine *engine);

/**
 * Returns the DSN of the store.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_dsn(const struct mcp_state_engine *engine,
                                    struct mcp_state_buffer **out_dsn,
                                    struct mcp_state_error *error);

/**
 * Creates a session.
 *
 * `id`: 1 to 255 visible ASCII characters; NULL: a random UUID. `ttl_ms`: the idle time after which the session expires; NULL:
 * the store's. `principal`: the caller that the session belongs to, and no other caller finds it (G12); NULL: every caller with
 * the id. `*out_session`: the session, to be freed with mcp_state_session_free(); NULL if a session has this id already, and
 * then nothing was changed.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED if the store has max_sessions and none can be evicted, and with MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_create_session(const struct mcp_state_engine *engine,
                                               const char *id,
                                               size_t id_len,
                                               const int64_t *ttl_ms,
                                               const char *principal,
                                               size_t principal_len,
                                               struct mcp_state_session **out_session,
                                               struct mcp_state_error *error);

/**
 * Opens a session.
 *
 * `principal`: the authenticated caller; NULL: an anonymous one. `*out_session`: the session, to be freed with
 * mcp_state_session_free(); NULL if it never existed, has expired, was destroyed, or belongs to another principal; the caller
 * cannot tell which (G12).
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_open_session(const struct mcp_state_engine *engine,
                                             const char *id,
                                             size_t id_len,
                                             const char *principal,
                                             size_t principal_len,
                                             struct mcp_state_session **out_session,
                                             struct mcp_state_error *error);

/**
 * The waiting room of the store: each exchange that waits for its client attaches to it (mcp_state_attach()) and detaches
 * afterwards. It is refused with MCP_STATE_LIMIT_EXCEEDED when `places` wait already. A place ends with its process, too. The
 * room is in no list of sessions, and nothing else is done with it.
 *
 * `places`: how many may wait; NULL: the store's `max_waiting`. `*out_room`: to be freed with mcp_state_session_free(); NULL if
 * neither is set, and waiting exchanges are not counted.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_waiting_room(const struct mcp_state_engine *engine,
                                             const int64_t *places,
                                             struct mcp_state_session **out_room,
                                             struct mcp_state_error *error);

/**
 * Removes at most `limit` expired sessions, and releases owners of dead processes in the sessions that it reads (G11).
 *
 * `*out_sessions`, `*out_owners`: the numbers of both. `*out_more`: whether expired sessions are left.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_collect(const struct mcp_state_engine *engine,
                                        int64_t limit,
                                        int64_t *out_sessions,
                                        int64_t *out_owners,
                                        bool *out_more,
                                        struct mcp_state_error *error);

/**
 * Returns the contents and counters of the store as a JSON object: `sessions`, `used_bytes`, `limit_bytes`,
 * `waiting`, `max_waiting`; `counters` and `limits`, numbers
 * by name; `place`, texts by name. Names may be added.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_stats(const struct mcp_state_engine *engine,
                                      struct mcp_state_buffer **out_json,
                                      struct mcp_state_error *error);

/**
 * Registers a client's request that the owner serves.
 *
 * `id_text`: the request's JSON-RPC id if that is a text; NULL: it is the number `id`. `policy`: MCP_STATE_POLICY_*.
 * `*out_begun`: false when a request with this id is in flight and the policy is to reject.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_begin_request(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t id,
                                              const char *id_text,
                                              size_t id_text_len,
                                              int32_t policy,
                                              bool *out_begun,
                                              struct mcp_state_error *error);

/**
 * Removes a client's request that the owner has served.
 *
 * `id`, `id_text`: as of mcp_state_begin_request(). `*out_was_in_flight`: whether it was. `*out_cancelled`: whether the client
 * cancelled it meanwhile.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_finish_request(const struct mcp_state_session *session,
                                               const char *owner,
                                               size_t owner_len,
                                               int64_t id,
                                               const char *id_text,
                                               size_t id_text_len,
                                               bool *out_was_in_flight,
                                               bool *out_cancelled,
                                               struct mcp_state_error *error);

/**
 * Whether the client has cancelled this request of the owner.
 *
 * `id`, `id_text`: as of mcp_state_begin_request().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_is_cancelled(const struct mcp_state_session *session,
                                             const char *owner,
                                             size_t owner_len,
                                             int64_t id,
                                             const char *id_text,
                                             size_t id_text_len,
                                             bool *out_cancelled,
                                             struct mcp_state_error *error);

/**
 * Cancels the only request in flight with this id and wakes its owner.
 *
 * `id`, `id_text`: as of mcp_state_begin_request(). `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN or _AMBIGUOUS.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cancel_request(const struct mcp_state_session *session,
                                               int64_t id,
                                               const char *id_text,
                                               size_t id_text_len,
                                               enum mcp_state_cancel_outcome *out_outcome,
                                               struct mcp_state_error *error);

/**
 * How many messages the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_messages_len(const struct mcp_state_messages *messages);

/**
 * The message at `index`, counted from 0, good until the list is freed; NULL beyond the end.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const struct mcp_state_message *mcp_state_messages_at(const struct mcp_state_messages *messages,
                                                      size_t index);

/**
 * Frees a list of messages; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and no thread uses its elements any more.
 */
void mcp_state_messages_free(struct mcp_state_messages *messages);

/**
 * How many requests the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_requests_len(const struct mcp_state_requests *requests);

/**
 * The request at `index`, counted from 0, good until the list is freed; NULL beyond the end.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const struct mcp_state_request *mcp_state_requests_at(const struct mcp_state_requests *requests,
                                                      size_t index);

/**
 * Frees a list of requests; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and no thread uses its elements any more.
 */
void mcp_state_requests_free(struct mcp_state_requests *requests);

/**
 * The ids, good until the list is freed; NULL for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
const int64_t *mcp_state_ids_data(const struct mcp_state_ids *ids);

/**
 * How many ids the list has; 0 for a NULL list.
 *
 * # Safety
 *
 * The list is NULL or was not freed.
 */
size_t mcp_state_ids_len(const struct mcp_state_ids *ids);

/**
 * Frees a list of ids; NULL is none.
 *
 * # Safety
 *
 * The list is NULL or was not freed, and no thread uses its elements any more.
 */
void mcp_state_ids_free(struct mcp_state_ids *ids);

/**
 * Queues a message that only this owner can take (G3).
 *
 * `context`: kept with the message, may be empty. `*out_sequence`: its number among the owner's messages.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_enqueue_outgoing(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 const char *message,
                                                 size_t message_len,
                                                 const char *context,
                                                 size_t context_len,
                                                 int64_t *out_sequence,
                                                 struct mcp_state_error *error);

/**
 * Removes and returns the owner's next messages, at most `max`. Each is delivered at most once: a process that dies before it has
 * written its messages loses them. A stream also gets the session's broadcasts.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_take_outgoing(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t max,
                                              struct mcp_state_messages **out_messages,
                                              struct mcp_state_error *error);

/**
 * Returns the same messages and keeps them until mcp_state_acknowledge(), so each is delivered at least once. The owner also
 * reserves broadcasts, which return to the session if the owner ends without acknowledging them.
 *
 * `*out_messages`: to be freed with mcp_state_messages_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_peek_outgoing(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t max,
                                              struct mcp_state_messages **out_messages,
                                              struct mcp_state_error *error);

/**
 * Removes the owner's messages up to and with number `up_to`.
 *
 * `*out_removed`: how many.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_acknowledge(const struct mcp_state_session *session,
                                            const char *owner,
                                            size_t owner_len,
                                            int64_t up_to,
                                            int64_t *out_removed,
                                            struct mcp_state_error *error);

/**
 * Queues a message for the first stream owner that takes it.
 *
 * `context`: kept with the message, may be empty. `*out_number`: its number among the broadcasts.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_enqueue_broadcast(const struct mcp_state_session *session,
                                                  const char *message,
                                                  size_t message_len,
                                                  const char *context,
                                                  size_t context_len,
                                                  int64_t *out_number,
                                                  struct mcp_state_error *error);

/**
 * Adds an owner: the exchange that this process serves. mcp_state_detach() ends the owner. If this process dies first, the engine
 * releases the owner after its lease.
 *
 * `kind`: MCP_STATE_OWNER_*. `lease_ms`: the time without an operation after which the engine checks the process; NULL: the
 * store's. `out_owner`: a buffer of MCP_STATE_OWNER_SIZE bytes for the token and a NUL; `out_owner_size`: the size of the
 * buffer.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_attach(const struct mcp_state_session *session,
                                       int32_t kind,
                                       const int64_t *lease_ms,
                                       char *out_owner,
                                       size_t out_owner_size,
                                       struct mcp_state_error *error);

/**
 * Renews the owner's lease, as each of its operations does.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_renew(const struct mcp_state_session *session,
                                      const char *owner,
                                      size_t owner_len,
                                      struct mcp_state_error *error);

/**
 * Ends the owner and removes its messages and pending requests. Later answers to these requests are discarded as abandoned (G4).
 *
 * `*out_ended`: whether it had not ended before. `*out_dropped`, `*out_abandoned`: the numbers of removed messages and pending
 * requests.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_detach(const struct mcp_state_session *session,
                                       const char *owner,
                                       size_t owner_len,
                                       bool *out_ended,
                                       int64_t *out_dropped,
                                       int64_t *out_abandoned,
                                       struct mcp_state_error *error);

/**
 * Waits for an event of `interest` that is newer than `after`: one slice, at most `wait_ms` and at most a second. Another thread
 * or process wakes the caller (G9). To be called in a loop with the cursor of the last call.
 *
 * `interest`: the sum of MCP_STATE_INTEREST_*. `after`: the last wait's cursor, 0 at first. `*out_outcome`: the reason for the end.
 * `*out_cursor`: the new `after`.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_wait(const struct mcp_state_session *session,
                                     const char *owner,
                                     size_t owner_len,
                                     int32_t interest,
                                     int64_t after,
                                     int64_t wait_ms,
                                     enum mcp_state_wait_outcome *out_outcome,
                                     int64_t *out_cursor,
                                     struct mcp_state_error *error);

/**
 * Returns an integer that no other request of this session has, in any process (G5).
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_next_request_id(const struct mcp_state_session *session,
                                                int64_t *out_id,
                                                struct mcp_state_error *error);

/**
 * Registers a request that is sent by other means.
 *
 * `id`: best from mcp_state_next_request_id(). `timeout_ms`: after which it times out and its answer is late;
 * MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `method`: for display, may be empty. `*out_registered`: false
 * when a pending request has this id. `*out_left_ms`: the time it has, else 0.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_register_pending(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 int64_t id,
                                                 int64_t timeout_ms,
                                                 const char *method,
                                                 size_t method_len,
                                                 bool *out_registered,
                                                 int64_t *out_left_ms,
                                                 struct mcp_state_error *error);

/**
 * Gives a JSON-RPC request an id, registers it and queues it, all at once.
 *
 * `message`: a JSON object without `id`. `timeout_ms`: after which it times out and its answer is late;
 * MCP_STATE_TIMEOUT_OF_STORE: the store's `request_timeout_ms`. `context`: kept with the message, may be empty. `*out_id`: the id.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL, MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_send_request(const struct mcp_state_session *session,
                                             const char *owner,
                                             size_t owner_len,
                                             const char *message,
                                             size_t message_len,
                                             int64_t timeout_ms,
                                             const char *context,
                                             size_t context_len,
                                             int64_t *out_id,
                                             struct mcp_state_error *error);

/**
 * Delivers the client's response to the pending request with this id and wakes its owner, or discards a late response (G4).
 *
 * `*out_delivery`: delivered, or the reason why it is late.
 *
 * Fails with MCP_STATE_LIMIT_EXCEEDED, MCP_STATE_STORE_FULL.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_deliver_response(const struct mcp_state_session *session,
                                                 int64_t id,
                                                 const char *payload,
                                                 size_t payload_len,
                                                 enum mcp_state_delivery *out_delivery,
                                                 struct mcp_state_error *error);

/**
 * Returns the state of the owner's request. Answered, timed out and cancelled ones are removed, response and request together (G2).
 *
 * `*out_state`: the state. `*out_payload`: the response if it was answered, to be freed with mcp_state_buffer_free(), else
 * NULL. `*out_left_ms`: the time it has left while waiting, else 0.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_claim(const struct mcp_state_session *session,
                                      const char *owner,
                                      size_t owner_len,
                                      int64_t id,
                                      enum mcp_state_claim_state *out_state,
                                      struct mcp_state_buffer **out_payload,
                                      int64_t *out_left_ms,
                                      struct mcp_state_error *error);

/**
 * Removes and returns the owner's next request that was answered, timed out or was cancelled (G2).
 *
 * `*out_found`: whether there was one. `*out_id`, `*out_state`, `*out_payload`: as of mcp_state_claim(); without one, 0,
 * MCP_STATE_CLAIM_UNKNOWN and NULL.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_claim_any(const struct mcp_state_session *session,
                                          const char *owner,
                                          size_t owner_len,
                                          bool *out_found,
                                          int64_t *out_id,
                                          enum mcp_state_claim_state *out_state,
                                          struct mcp_state_buffer **out_payload,
                                          struct mcp_state_error *error);

/**
 * Removes the owner's requests whose deadline has passed.
 *
 * `*out_ids`: their ids, to be freed with mcp_state_ids_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_resolve_timeouts(const struct mcp_state_session *session,
                                                 const char *owner,
                                                 size_t owner_len,
                                                 struct mcp_state_ids **out_ids,
                                                 struct mcp_state_error *error);

/**
 * Cancels the owner's request: a response that comes now is late.
 *
 * `*out_outcome`: MCP_STATE_CANCEL_CANCELLED, _UNKNOWN, _ALREADY_ANSWERED, _TIMED_OUT, _ALREADY_CANCELLED or _NOT_OWNER.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_cancel_pending(const struct mcp_state_session *session,
                                               const char *owner,
                                               size_t owner_len,
                                               int64_t id,
                                               enum mcp_state_cancel_outcome *out_outcome,
                                               struct mcp_state_error *error);

/**
 * Returns the pending requests of an owner, or of the session.
 *
 * `owner`: NULL: all owners. `*out_requests`: to be freed with mcp_state_requests_free().
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_pending(const struct mcp_state_session *session,
                                        const char *owner,
                                        size_t owner_len,
                                        struct mcp_state_requests **out_requests,
                                        struct mcp_state_error *error);

/**
 * Returns the response to the owner's request, without claiming it.
 *
 * `*out_payload`: to be freed with mcp_state_buffer_free(); NULL if the request has no response.
 *
 * Fails with MCP_STATE_OWNER_EXPIRED.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_peek_response(const struct mcp_state_session *session,
                                              const char *owner,
                                              size_t owner_len,
                                              int64_t id,
                                              struct mcp_state_buffer **out_payload,
                                              struct mcp_state_error *error);

/**
 * Frees the handle of a session, or does nothing for NULL. The session and its owners continue to exist.
 *
 * # Safety
 *
 * The handle is NULL or was not freed.
 */
void mcp_state_session_free(struct mcp_state_session *session);

/**
 * The session's id, as in `Mcp-Session-Id`.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_session_id(const struct mcp_state_session *session,
                                           struct mcp_state_buffer **out_id,
                                           struct mcp_state_error *error);

/**
 * Renews the session: it expires after its idle time from now on.
 *
 * `*out_there`: whether it still exists.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_touch(const struct mcp_state_session *session,
                                      bool *out_there,
                                      struct mcp_state_error *error);

/**
 * Destroys the session (G7) and wakes all its waiters.
 *
 * `*out_ended`: whether it still existed.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_destroy_session(const struct mcp_state_session *session,
                                                bool *out_ended,
                                                struct mcp_state_error *error);

/**
 * Returns the contents of the session as a JSON object: `id`, `age_ms`, `idle_ms`, `ttl_ms`, `owners`, `exchanges`, `pending`,
 * `in_flight`, `queued`, `broadcasts`, `message_bytes`, `attribute_bytes`, and `late`, the late responses by reason. Names may
 * be added.
 *
 * # Safety
 *
 * As for all functions.
 */
enum mcp_state_status mcp_state_session_stats(const struct mcp_state_session *session,
                                              struct mcp_state_buffer **out_json,
                                              struct mcp_state_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MCP_STATE_H */
