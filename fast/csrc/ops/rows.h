/* How the operands of a row lie. */
#ifndef FC_OPS_ROWS_H
#define FC_OPS_ROWS_H

enum {
    FC_ROW_BOTH, /* contiguous both, or one of them a single element */
    FC_ROW_RIGHT_ONE,
    FC_ROW_LEFT_ONE,
    FC_ROW_STREAM = 4 /* and the result, which starts at a multiple of 32, is not read soon */
};

#endif
