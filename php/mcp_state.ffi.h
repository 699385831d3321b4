#define FFI_SCOPE "mcp_state"
#define FFI_LIB "libmcp_state.so.1"
/* mcp_state.h for PHP's FFI::cdef(), FFI::load() and ffi.preload. FFI_LIB is looked for where ld.so looks. */

/* Written by cbindgen from capi/; do not edit. */

typedef enum {
  MCP_STATE_OK = 0,
  MCP_STATE_INVALID_ARGUMENT = 1,
  MCP_STATE_INVALID_DSN = 2,
  MCP_STATE_LIMIT_EXCEEDED = 3,
  MCP_STATE_SESSION_NOT_FOUND = 4,
  MCP_STATE_OWNER_EXPIRED = 5,
  MCP_STATE_STORE_UNAVAILABLE = 6,
  MCP_STATE_STORE_FULL = 7,
  MCP_STATE_STORE_INCOMPATIBLE = 8,
  MCP_STATE_STORE_CORRUPT = 9,
  MCP_STATE_OUTCOME_UNKNOWN = 10,
  MCP_STATE_INTERNAL = 11,
} mcp_state_status;

typedef enum {
  MCP_STATE_CANCEL_CANCELLED = 1,
  MCP_STATE_CANCEL_UNKNOWN = 2,
  MCP_STATE_CANCEL_AMBIGUOUS = 3,
  MCP_STATE_CANCEL_ALREADY_ANSWERED = 4,
  MCP_STATE_CANCEL_TIMED_OUT = 5,
  MCP_STATE_CANCEL_NOT_OWNER = 6,
  MCP_STATE_CANCEL_ALREADY_CANCELLED = 7,
} mcp_state_cancel_outcome;

typedef enum {
  MCP_STATE_CLAIM_ANSWERED = 1,
  MCP_STATE_CLAIM_WAITING = 2,
  MCP_STATE_CLAIM_TIMED_OUT = 3,
  MCP_STATE_CLAIM_CANCELLED = 4,
  MCP_STATE_CLAIM_NOT_OWNER = 5,
  MCP_STATE_CLAIM_UNKNOWN = 6,
} mcp_state_claim_state;

typedef enum {
  MCP_STATE_WAIT_READY = 1,
  MCP_STATE_WAIT_DEADLINE = 2,
  MCP_STATE_WAIT_DESTROYED = 3,
  MCP_STATE_WAIT_INTERRUPTED = 4,
} mcp_state_wait_outcome;

typedef enum {
  MCP_STATE_DELIVERED = 0,
  MCP_STATE_LATE_UNKNOWN = 1,
  MCP_STATE_LATE_FINISHED = 2,
  MCP_STATE_LATE_TIMED_OUT = 3,
  MCP_STATE_LATE_ALREADY_ANSWERED = 4,
  MCP_STATE_LATE_CANCELLED = 5,
  MCP_STATE_LATE_ABANDONED = 6,
} mcp_state_delivery;

typedef enum {
  MCP_STATE_OWNER_STREAM = 1,
  MCP_STATE_OWNER_REPLY = 2,
} mcp_state_owner_kind;

typedef enum {
  MCP_STATE_INTEREST_RESOLUTION = 1,
  MCP_STATE_INTEREST_MESSAGE = 2,
  MCP_STATE_INTEREST_CANCELLATION = 4,
} mcp_state_interest;

typedef enum {
  MCP_STATE_POLICY_ISOLATE = 1,
  MCP_STATE_POLICY_REJECT = 2,
} mcp_state_policy;

typedef struct mcp_state_buffer mcp_state_buffer;

typedef struct mcp_state_engine mcp_state_engine;

typedef struct mcp_state_ids mcp_state_ids;

typedef struct mcp_state_messages mcp_state_messages;

typedef struct mcp_state_requests mcp_state_requests;

typedef struct mcp_state_session mcp_state_session;

typedef struct {
  mcp_state_status status;
  int64_t maximum;
  int64_t actual;
  char limit[40];
  char text[1024];
} mcp_state_error;

typedef struct {
  const char *key;
  size_t key_len;
  const char *json;
  size_t json_len;
} mcp_state_change;

typedef struct {
  int64_t number;
  const uint8_t *text;
  size_t text_len;
  const uint8_t *context;
  size_t context_len;
} mcp_state_message;

typedef struct {
  int64_t id;
  mcp_state_claim_state state;
  int64_t left_ms;
  const uint8_t *method;
  size_t method_len;
} mcp_state_request;

uint32_t mcp_state_abi_version(void);

const char *mcp_state_version(void);

mcp_state_status mcp_state_get(const mcp_state_session *session,
                               const char *key,
                               size_t key_len,
                               mcp_state_buffer **out_json,
                               mcp_state_error *error);

mcp_state_status mcp_state_all(const mcp_state_session *session, mcp_state_buffer **out_json, mcp_state_error *error);

mcp_state_status mcp_state_set(const mcp_state_session *session,
                               const char *key,
                               size_t key_len,
                               const char *json,
                               size_t json_len,
                               mcp_state_error *error);

mcp_state_status mcp_state_remove(const mcp_state_session *session,
                                  const char *key,
                                  size_t key_len,
                                  bool *out_removed,
                                  mcp_state_error *error);

mcp_state_status mcp_state_take(const mcp_state_session *session,
                                const char *key,
                                size_t key_len,
                                mcp_state_buffer **out_json,
                                mcp_state_error *error);

mcp_state_status mcp_state_put_if_absent(const mcp_state_session *session,
                                         const char *key,
                                         size_t key_len,
                                         const char *json,
                                         size_t json_len,
                                         bool *out_put,
                                         mcp_state_error *error);

mcp_state_status mcp_state_compare_and_set(const mcp_state_session *session,
                                           const char *key,
                                           size_t key_len,
                                           const char *expected,
                                           size_t expected_len,
                                           const char *json,
                                           size_t json_len,
                                           bool *out_set,
                                           mcp_state_error *error);

mcp_state_status mcp_state_patch(const mcp_state_session *session,
                                 const mcp_state_change *changes,
                                 size_t count,
                                 mcp_state_error *error);

const uint8_t *mcp_state_buffer_data(const mcp_state_buffer *buffer);

size_t mcp_state_buffer_len(const mcp_state_buffer *buffer);

void mcp_state_buffer_free(mcp_state_buffer *buffer);

mcp_state_status mcp_state_publish(const mcp_state_engine *engine,
                                   const char *topic,
                                   size_t topic_len,
                                   const char *message,
                                   size_t message_len,
                                   int64_t *out_number,
                                   mcp_state_error *error);

mcp_state_status mcp_state_cursor(const mcp_state_engine *engine,
                                  const char *topic,
                                  size_t topic_len,
                                  int64_t *out_cursor,
                                  mcp_state_error *error);

mcp_state_status mcp_state_since(const mcp_state_engine *engine,
                                 const char *topic,
                                 size_t topic_len,
                                 int64_t cursor,
                                 int64_t max,
                                 mcp_state_messages **out_messages,
                                 int64_t *out_cursor,
                                 int64_t *out_missed,
                                 mcp_state_error *error);

mcp_state_status mcp_state_wait_since(const mcp_state_engine *engine,
                                      const char *topic,
                                      size_t topic_len,
                                      int64_t cursor,
                                      int64_t wait_ms,
                                      bool *out_there,
                                      mcp_state_error *error);

mcp_state_status mcp_state_consume_once(const mcp_state_engine *engine,
                                        const char *key,
                                        size_t key_len,
                                        int64_t ttl_ms,
                                        bool *out_first,
                                        mcp_state_error *error);

mcp_state_status mcp_state_engine_open(const char *dsn,
                                       size_t dsn_len,
                                       mcp_state_engine **out_engine,
                                       mcp_state_error *error);

void mcp_state_engine_free(mcp_state_engine *engine);

mcp_state_status mcp_state_dsn(const mcp_state_engine *engine, mcp_state_buffer **out_dsn, mcp_state_error *error);

mcp_state_status mcp_state_create_session(const mcp_state_engine *engine,
                                          const char *id,
                                          size_t id_len,
                                          const int64_t *ttl_ms,
                                          const char *principal,
                                          size_t principal_len,
                                          mcp_state_session **out_session,
                                          mcp_state_error *error);

mcp_state_status mcp_state_open_session(const mcp_state_engine *engine,
                                        const char *id,
                                        size_t id_len,
                                        const char *principal,
                                        size_t principal_len,
                                        mcp_state_session **out_session,
                                        mcp_state_error *error);

mcp_state_status mcp_state_waiting_room(const mcp_state_engine *engine,
                                        const int64_t *places,
                                        mcp_state_session **out_room,
                                        mcp_state_error *error);

mcp_state_status mcp_state_collect(const mcp_state_engine *engine,
                                   int64_t limit,
                                   int64_t *out_sessions,
                                   int64_t *out_owners,
                                   bool *out_more,
                                   mcp_state_error *error);

mcp_state_status mcp_state_stats(const mcp_state_engine *engine, mcp_state_buffer **out_json, mcp_state_error *error);

mcp_state_status mcp_state_begin_request(const mcp_state_session *session,
                                         const char *owner,
                                         size_t owner_len,
                                         int64_t id,
                                         const char *id_text,
                                         size_t id_text_len,
                                         int32_t policy,
                                         bool *out_begun,
                                         mcp_state_error *error);

mcp_state_status mcp_state_finish_request(const mcp_state_session *session,
                                          const char *owner,
                                          size_t owner_len,
                                          int64_t id,
                                          const char *id_text,
                                          size_t id_text_len,
                                          bool *out_was_in_flight,
                                          bool *out_cancelled,
                                          mcp_state_error *error);

mcp_state_status mcp_state_is_cancelled(const mcp_state_session *session,
                                        const char *owner,
                                        size_t owner_len,
                                        int64_t id,
                                        const char *id_text,
                                        size_t id_text_len,
                                        bool *out_cancelled,
                                        mcp_state_error *error);

mcp_state_status mcp_state_cancel_request(const mcp_state_session *session,
                                          int64_t id,
                                          const char *id_text,
                                          size_t id_text_len,
                                          mcp_state_cancel_outcome *out_outcome,
                                          mcp_state_error *error);

size_t mcp_state_messages_len(const mcp_state_messages *messages);

const mcp_state_message *mcp_state_messages_at(const mcp_state_messages *messages, size_t index);

void mcp_state_messages_free(mcp_state_messages *messages);

size_t mcp_state_requests_len(const mcp_state_requests *requests);

const mcp_state_request *mcp_state_requests_at(const mcp_state_requests *requests, size_t index);

void mcp_state_requests_free(mcp_state_requests *requests);

const int64_t *mcp_state_ids_data(const mcp_state_ids *ids);

size_t mcp_state_ids_len(const mcp_state_ids *ids);

void mcp_state_ids_free(mcp_state_ids *ids);

mcp_state_status mcp_state_enqueue_outgoing(const mcp_state_session *session,
                                            const char *owner,
                                            size_t owner_len,
                                            const char *message,
                                            size_t message_len,
                                            const char *context,
                                            size_t context_len,
                                            int64_t *out_sequence,
                                            mcp_state_error *error);

mcp_state_status mcp_state_take_outgoing(const mcp_state_session *session,
                                         const char *owner,
                                         size_t owner_len,
                                         int64_t max,
                                         mcp_state_messages **out_messages,
                                         mcp_state_error *error);

mcp_state_status mcp_state_peek_outgoing(const mcp_state_session *session,
                                         const char *owner,
                                         size_t owner_len,
                                         int64_t max,
                                         mcp_state_messages **out_messages,
                                         mcp_state_error *error);

mcp_state_status mcp_state_acknowledge(const mcp_state_session *session,
                                       const char *owner,
                                       size_t owner_len,
                                       int64_t up_to,
                                       int64_t *out_removed,
                                       mcp_state_error *error);

mcp_state_status mcp_state_enqueue_broadcast(const mcp_state_session *session,
                                             const char *message,
                                             size_t message_len,
                                             const char *context,
                                             size_t context_len,
                                             int64_t *out_number,
                                             mcp_state_error *error);

mcp_state_status mcp_state_attach(const mcp_state_session *session,
                                  int32_t kind,
                                  const int64_t *lease_ms,
                                  char *out_owner,
                                  size_t out_owner_size,
                                  mcp_state_error *error);

mcp_state_status mcp_state_renew(const mcp_state_session *session,
                                 const char *owner,
                                 size_t owner_len,
                                 mcp_state_error *error);

mcp_state_status mcp_state_detach(const mcp_state_session *session,
                                  const char *owner,
                                  size_t owner_len,
                                  bool *out_ended,
                                  int64_t *out_dropped,
                                  int64_t *out_abandoned,
                                  mcp_state_error *error);

mcp_state_status mcp_state_wait(const mcp_state_session *session,
                                const char *owner,
                                size_t owner_len,
                                int32_t interest,
                                int64_t after,
                                int64_t wait_ms,
                                mcp_state_wait_outcome *out_outcome,
                                int64_t *out_cursor,
                                mcp_state_error *error);

mcp_state_status mcp_state_next_request_id(const mcp_state_session *session, int64_t *out_id, mcp_state_error *error);

mcp_state_status mcp_state_register_pending(const mcp_state_session *session,
                                            const char *owner,
                                            size_t owner_len,
                                            int64_t id,
                                            int64_t timeout_ms,
                                            const char *method,
                                            size_t method_len,
                                            bool *out_registered,
                                            int64_t *out_left_ms,
                                            mcp_state_error *error);

mcp_state_status mcp_state_send_request(const mcp_state_session *session,
                                        const char *owner,
                                        size_t owner_len,
                                        const char *message,
                                        size_t message_len,
                                        int64_t timeout_ms,
                                        const char *context,
                                        size_t context_len,
                                        int64_t *out_id,
                                        mcp_state_error *error);

mcp_state_status mcp_state_deliver_response(const mcp_state_session *session,
                                            int64_t id,
                                            const char *payload,
                                            size_t payload_len,
                                            mcp_state_delivery *out_delivery,
                                            mcp_state_error *error);

mcp_state_status mcp_state_claim(const mcp_state_session *session,
                                 const char *owner,
                                 size_t owner_len,
                                 int64_t id,
                                 mcp_state_claim_state *out_state,
                                 mcp_state_buffer **out_payload,
                                 int64_t *out_left_ms,
                                 mcp_state_error *error);

mcp_state_status mcp_state_claim_any(const mcp_state_session *session,
                                     const char *owner,
                                     size_t owner_len,
                                     bool *out_found,
                                     int64_t *out_id,
                                     mcp_state_claim_state *out_state,
                                     mcp_state_buffer **out_payload,
                                     mcp_state_error *error);

mcp_state_status mcp_state_resolve_timeouts(const mcp_state_session *session,
                                            const char *owner,
                                            size_t owner_len,
                                            mcp_state_ids **out_ids,
                                            mcp_state_error *error);

mcp_state_status mcp_state_cancel_pending(const mcp_state_session *session,
                                          const char *owner,
                                          size_t owner_len,
                                          int64_t id,
                                          mcp_state_cancel_outcome *out_outcome,
                                          mcp_state_error *error);

mcp_state_status mcp_state_pending(const mcp_state_session *session,
                                   const char *owner,
                                   size_t owner_len,
                                   mcp_state_requests **out_requests,
                                   mcp_state_error *error);

mcp_state_status mcp_state_peek_response(const mcp_state_session *session,
                                         const char *owner,
                                         size_t owner_len,
                                         int64_t id,
                                         mcp_state_buffer **out_payload,
                                         mcp_state_error *error);

void mcp_state_session_free(mcp_state_session *session);

mcp_state_status mcp_state_session_id(const mcp_state_session *session,
                                      mcp_state_buffer **out_id,
                                      mcp_state_error *error);

mcp_state_status mcp_state_touch(const mcp_state_session *session, bool *out_there, mcp_state_error *error);

mcp_state_status mcp_state_destroy_session(const mcp_state_session *session, bool *out_ended, mcp_state_error *error);

mcp_state_status mcp_state_session_stats(const mcp_state_session *session,
                                         mcp_state_buffer **out_json,
                                         mcp_state_error *error);
