/* A block of a matrix product, as the kernels take it (ops/chains.c). */
#ifndef FC_OPS_PRODUCT_H
#define FC_OPS_PRODUCT_H
#include <stddef.h>

/* Every kernel works in tiles of FC_TILE_ROWS rows by 64 bytes of columns. */
enum { FC_TILE_ROWS = 6, FC_TILE_BYTES = 64 };

/* c[i][j] = the chain of a[i][l], b[l][j] for l < k; strides count elements */
struct fc_product {
    int dtype; /* of a and b; c is f32, of f64 f64 */
    const unsigned char *a, *b;
    size_t m, n, k;
    size_t a_row, a_k, b_k, b_column;
    void *c;
    size_t c_row;
    /* where blocks of a and b are laid out: room for rows * depth and depth * columns elements of c's dtype, at multiples of 64
       bytes; rows is a multiple of FC_TILE_ROWS, columns of a tile's */
    void *a_block, *b_block;
    size_t rows, columns, depth;
};

/* y[j] = the chain of x[l], w[l][j] for l < k */
struct fc_product_row {
    int dtype; /* of x and w; y as c above */
    const unsigned char *x, *w;
    size_t n, k, x_k, w_k, w_column;
    void *y;
};

#endif
