/* Sizes of the tree of a sum (clause CONTEXT-SUM-1). */
#ifndef FC_OPS_LANES_H
#define FC_OPS_LANES_H

enum {
    FC_LANES = 32,
    FC_ROWS = 4,     /* lines of f32 that are added side by side */
    FC_BLOCK = 8192, /* elements of one block */
    FC_COLUMNS = 256 /* columns whose lanes fit the stack */
};

#endif
