/* ln 2 and pi/2 in fixed point: FX_LIMBS fraction limbs, the lowest first, then the integer limb; rounded down.. */
static const uint64_t LN_2[FX_LIMBS + 1] = {
    UINT64_C(0x27573b291169b825), UINT64_C(0xed2eae35c1382144), UINT64_C(0x559552fb4afa1b10),
    UINT64_C(0xe7b876206debac98), UINT64_C(0x8a0d175b8baafa2b), UINT64_C(0x40f343267298b62d),
    UINT64_C(0xc9e3b39803f2f6af), UINT64_C(0xb17217f7d1cf79ab), UINT64_C(0x0000000000000000)};
static const uint64_t HALF_PI[FX_LIMBS + 1] = {
    UINT64_C(0x9fc26adadaa3848b), UINT64_C(0x605614dbe4be286e), UINT64_C(0xdf2a33679a748636),
    UINT64_C(0xa29410f31c6809bb), UINT64_C(0x04177d4c76273644), UINT64_C(0x52049c1114cf98e8),
    UINT64_C(0x898cc51701b839a2), UINT64_C(0x921fb54442d18469), UINT64_C(0x0000000000000001)};
