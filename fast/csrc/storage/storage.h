/*
 * Storage: memory with a reference count (chapter storage).
 *
 * References are *held* by tensors and by hand, or are *pins* of arrays that were handed out.  Both counts and the two
 * marks of the end live in one word, so that exactly one thread sees the last reference go.  A storage is live, then
 * released (no references; its hook runs or has run), then destroyed (its memory is gone, or goes with the last pin).
 * The header outlives all that for as long as anything points to it: its *holders*.
 *
 * A holder is a C structure that keeps the pointer; whoever owns one may read the header, and nothing else may.
 */
#ifndef FC_STORAGE_STORAGE_H
#define FC_STORAGE_STORAGE_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct fc_storage;
struct fc_pool;

/* What the language layer does at the ends of a storage's life; begins the record that `owner` points to. */
struct fc_owner {
    void (*finish)(struct fc_storage *);  /* the last reference is gone: run the hook.  NULL: destroy */
    void (*closing)(struct fc_storage *); /* it is being destroyed */
    void (*forget)(struct fc_storage *);  /* nobody sees the memory any more */
    void (*end)(struct fc_storage *);     /* the header goes: free the owner */
};

enum { FC_STORAGE_OWNED, FC_STORAGE_BORROWED, FC_STORAGE_POOLED };

struct fc_storage {
    _Atomic uint64_t life;
    _Atomic uint32_t holders;
    _Atomic uint32_t generation;
    unsigned char *data;
    size_t bytes;          /* what may be used, at least capacity * element size */
    struct fc_pool *pool;  /* where the memory goes back to; NULL: nowhere */
    struct fc_owner *owner; /* or NULL */
    uint8_t dtype;
    uint8_t kind;
    uint8_t read_only;
};
/* Clause: STORAGE-HEADER-1 */
_Static_assert(sizeof(struct fc_storage) <= 64, "a storage's header fits a cache line");

/* fields of `life` */
#define FC_HELD ((uint64_t)1)
#define FC_PIN ((uint64_t)1 << 30)
#define FC_RELEASED ((uint64_t)1 << 62)
#define FC_DESTROYED ((uint64_t)1 << 63)
#define FC_COUNT_MASK (FC_PIN - 1)
static inline uint64_t fc_held_of(uint64_t life) { return life & FC_COUNT_MASK; }
static inline uint64_t fc_pins_of(uint64_t life) { return life >> 30 & FC_COUNT_MASK; }
static inline uint64_t fc_refs_of(uint64_t life) { return life & FC_DESTROYED ? 0 : fc_held_of(life) + fc_pins_of(life); }
static inline uint64_t fc_life_of(const struct fc_storage *s) { return atomic_load_explicit(&s->life, memory_order_acquire); }
static inline int fc_is_live(const struct fc_storage *s) { return !(fc_life_of(s) & (FC_RELEASED | FC_DESTROYED)); }
static inline int fc_has_memory(const struct fc_storage *s) { return !(fc_life_of(s) & FC_DESTROYED); }

/* A header over memory, with one held reference and one holder; NULL, and the memory still the caller's, without room. */
struct fc_storage *fc_storage_new(int dtype, int kind, void *data, size_t bytes, int read_only);
/* Set up a header that the caller has room for. */
void fc_storage_init(struct fc_storage *s, int dtype, int kind, void *data, size_t bytes, int read_only);

/* Holders. */
static inline void fc_storage_hold(struct fc_storage *s) { atomic_fetch_add_explicit(&s->holders, 1, memory_order_relaxed); }
/* The last one gives back what was retained by hand, and the header (STORAGE-GC-1). */
void fc_storage_drop(struct fc_storage *s);

/* One more held reference; 0 unless it is live (or there are 2^30). */
int fc_storage_retain(struct fc_storage *s);
/* One held reference less, the last one finishes; 0 when none is held. */
int fc_storage_release(struct fc_storage *s);
/* One held reference and one holder less. */
void fc_storage_let_go(struct fc_storage *s);
/* One more pin, with a holder; 0 when the memory is gone. */
int fc_storage_pin(struct fc_storage *s);
void fc_storage_unpin(struct fc_storage *s);
/* One reference of what there is. */
enum { FC_RESET, FC_RESET_HELD, FC_RESET_DESTROYED };
int fc_storage_reset(struct fc_storage *s);
/* 0 when it was destroyed before. */
int fc_storage_destroy(struct fc_storage *s);

#endif
