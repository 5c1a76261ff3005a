#define PRODUCT(OUTPUTS, ROWS, STAGES, RESIDENT)                                                                             \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) product_##OUTPUTS##x##ROWS(Job job) {                \
        product<OUTPUTS, ROWS, STAGES, false>(job);                                                                          \
    }                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) product_##OUTPUTS##x##ROWS##_turned(Job job) {       \
        product<OUTPUTS, ROWS, STAGES, true>(job);                                                                           \
    }
PRODUCT(128, 128, 3, 2)
PRODUCT(128, 64, 4, 2)
PRODUCT(64, 64, 4, 3)
PRODUCT(64, 32, 4, 4)
PRODUCT(64, 16, 9, 2)
PRODUCT(64, 8, 9, 2)
