/* The kernels in force. */
#ifndef FC_DISPATCH_H
#define FC_DISPATCH_H
#include "core/kernels.h"

const fc_kernels *fc_kernels_in_force(void);

#endif
