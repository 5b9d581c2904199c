/* How the operands of a row lie. */
#ifndef FC_OPS_ROWS_H
#define FC_OPS_ROWS_H

enum { FC_ROW_BOTH, FC_ROW_RIGHT_ONE, FC_ROW_LEFT_ONE }; /* contiguous both, or one of them a single element */

#endif
