//! Results that were computed to 400 bits elsewhere and rounded once: for each function the arguments, of tens of
//! millions, whose results lie closest to the middle between two numbers, then some others.

use super::Function::*;
use super::*;
use crate::numerics::FloatKind::*;

#[test]
fn results_of_f32_are_rounded_correctly() {
    #[rustfmt::skip]
    let expected: [(Function, u32, u32); 74] = [
        (Ex2, 0xBAE3_6F38, 0x3F7F_B13A), (Ex2, 0x3FA5_A5D7, 0x401C_F226), (Ex2, 0xBD72_3ABF, 0x3F75_B7E7),
        (Ex2, 0x3FE6_9390, 0x405F_12EE), (Ex2, 0xBA96_4C18, 0x3F7F_CBEF), (Ex2, 0xBCEF_4B6C, 0x3F7A_DE69),
        (Ex2, 0x41FA_EFF3, 0x4F25_189E), (Ex2, 0xBB8F_DCC2, 0x3F7F_38DE), (Ex2, 0xC1ED_6AF9, 0x30A0_17D5),
        (Ex2, 0xC1A7_BC12, 0x3502_FA17), (Lg2, 0x7011_4A90, 0x42C2_5D98), (Lg2, 0x626B_8090, 0x428B_C25A),
        (Lg2, 0x6D6B_8090, 0x42B7_C25A), (Lg2, 0x6217_4467, 0x428A_7B5F), (Lg2, 0x3B5F_57D9, 0xC103_266E),
        (Lg2, 0x5F25_FC89, 0x427D_7FEC), (Lg2, 0x706F_C91C, 0x42C3_CFAB), (Lg2, 0x6605_2E68, 0x429A_1D50),
        (Lg2, 0x3DD7_948B, 0xC04F_DDE7), (Lg2, 0x420C_9466, 0x40A4_53EC), (Sin, 0x3DCF_5597, 0x3DCE_FAF9),
        (Sin, 0x3FA0_FA4E, 0x3F73_8CB1), (Sin, 0xBAB0_9237, 0xBAB0_9234), (Sin, 0x3EB0_0D62, 0x3EAC_9A7F),
        (Sin, 0xBEB0_0D62, 0xBEAC_9A7F), (Sin, 0xBC62_EDA4, 0xBC62_EBC8), (Sin, 0x4B5A_C0E0, 0xBF02_7DA9),
        (Sin, 0xFD79_378A, 0x3EFD_7F60), (Sin, 0x5EF3_1EE4, 0xBF7F_ECD7), (Sin, 0xC82E_8E8B, 0xBF5A_D9FD),
        (Cos, 0x3C10_7FE6, 0x3F7F_FD74), (Cos, 0xBE5F_A70E, 0x3F79_EB10), (Cos, 0x3E5F_A70E, 0x3F79_EB10),
        (Cos, 0x3B43_4E12, 0x3F7F_FFB5), (Cos, 0xBF86_26A5, 0x3EFF_9EB8), (Cos, 0x3EFE_C12E, 0x3F60_F582),
        (Cos, 0x65AB_85C0, 0x3F67_DB79), (Cos, 0xDDDB_C89D, 0xBF16_AD87), (Cos, 0xEC10_684E, 0x3E7E_85F4),
        (Cos, 0x4100_627C, 0xBE2D_4E43), (Tanh, 0x3CD4_1B91, 0x3CD4_0F70), (Tanh, 0xBBC8_B605, 0xBBC8_B561),
        (Tanh, 0xBBC8_B605, 0xBBC8_B561), (Tanh, 0xBF97_FBC7, 0xBF54_6B44), (Tanh, 0x3ADB_C904, 0x3ADB_C8F6),
        (Tanh, 0xBEF6_AFEE, 0xBEE5_37FE), (Tanh, 0xBE59_E9CF, 0xBE56_AEAD), (Tanh, 0xBF0D_BB9F, 0xBF00_D4C2),
        (Tanh, 0xBDA0_71B5, 0xBDA0_1DE2), (Tanh, 0xBBED_5A73, 0xBBED_5963), (Rsqrt, 0x733A_18E3, 0x2596_209E),
        (Rsqrt, 0x593A_18E3, 0x3296_209E), (Rsqrt, 0x3E09_F038, 0x402E_6055), (Rsqrt, 0x5B09_F038, 0x31AE_6055),
        (Rsqrt, 0x7B09_F038, 0x21AE_6055), (Rsqrt, 0x7E7F_FFFE, 0x2000_0001), (Rsqrt, 0x5FCA_3DC8, 0x2F4B_A978),
        (Rsqrt, 0x53F7_D275, 0x3537_FB59), (Rsqrt, 0x54E4_55BC, 0x34BF_AC0C), (Rsqrt, 0x4075_2D3F, 0x3F02_CB75),
        (Ex2, 0xC315_8000, 0x0000_0001), (Ex2, 0xC315_0000, 0x0000_0001), (Ex2, 0xC2FC_8000, 0x006B_A27E),
        (Ex2, 0x42FF_FFFF, 0x7F7F_FFA7), (Sin, 0x7F7F_FFFF, 0xBF05_99B3), (Cos, 0x7F7F_FFFF, 0x3F5A_5F96),
        (Sin, 0x4C00_0000, 0xBF79_FD0A), (Lg2, 0x3F80_0001, 0x3438_AA3A), (Lg2, 0x3F7F_FFFF, 0xB3B8_AA3C),
        (Lg2, 0x0000_0001, 0xC315_0000), (Tanh, 0x3F00_0000, 0x3EEC_9A9F), (Tanh, 0x4110_2CB3, 0x3F7F_FFFF),
        (Sin, 0x4049_0FDB, 0xB3BB_BD2E), (Cos, 0x3FC9_0FDB, 0xB33B_BD2E),
    ];
    for (function, bits, expected) in expected {
        let got = correct(function, F32, false, bits.into());
        assert_eq!(got, u64::from(expected), "{function:?} of {bits:08x}");
        // Both ways to compute it are tried, whichever the first one took.
        if function != Rsqrt {
            let slow = function.extended(f32::from_bits(bits).into()).odd();
            assert_eq!(rounded(&FloatFormat::F32, slow), u64::from(expected), "{function:?} of {bits:08x}, slowly");
        }
    }
}

#[test]
fn results_of_16_bits_are_rounded_once() {
    #[rustfmt::skip]
    let expected = [
        (Ex2, F16, 0xCE40, 0x0000), (Ex2, F16, 0xCE3F, 0x0001), (Ex2, F16, 0xCE41, 0x0000), (Ex2, F16, 0x11C5, 0x3C01),
        (Ex2, F16, 0x4BFF, 0x7BF5), (Ex2, F16, 0x4C00, 0x7C00), (Ex2, F16, 0xCB80, 0x0200), (Ex2, F16, 0x3555, 0x3D0A),
        (Tanh, F16, 0xCE40, 0xBC00), (Tanh, F16, 0xCE3F, 0xBC00), (Tanh, F16, 0xCE41, 0xBC00),
        (Tanh, F16, 0x11C5, 0x11C5), (Tanh, F16, 0x4BFF, 0x3C00), (Tanh, F16, 0x4C00, 0x3C00),
        (Tanh, F16, 0xCB80, 0xBC00), (Tanh, F16, 0x3555, 0x3525), (Ex2, Bf16, 0x3BB9, 0x3F81),
        (Ex2, Bf16, 0x42FE, 0x7F00), (Ex2, Bf16, 0x42FF, 0x7F35), (Ex2, Bf16, 0xC2FC, 0x0080),
        (Ex2, Bf16, 0xC315, 0x0000), (Ex2, Bf16, 0x3E55, 0x3F94), (Ex2, Bf16, 0xBF12, 0x3F2C),
        (Tanh, Bf16, 0x3BB9, 0x3BB9), (Tanh, Bf16, 0x42FE, 0x3F80), (Tanh, Bf16, 0x42FF, 0x3F80),
        (Tanh, Bf16, 0xC2FC, 0xBF80), (Tanh, Bf16, 0xC315, 0xBF80), (Tanh, Bf16, 0x3E55, 0x3E52),
        (Tanh, Bf16, 0xBF12, 0xBF04),
    ];
    for (function, kind, bits, expected) in expected {
        assert_eq!(correct(function, kind, false, bits), expected, "{function:?} of {bits:04x} in {kind:?}");
    }
}

#[test]
fn what_has_no_number_has_the_chips() {
    let (nan, infinity, minus) = (0x7FFF_FFFF, 0x7F80_0000, 0x8000_0000);
    for (function, bits, expected) in [
        (Ex2, 0xFF80_0000, 0),
        (Ex2, infinity, infinity),
        (Ex2, 0x7F80_0001, nan),
        (Lg2, 0, 0xFF80_0000),
        (Lg2, 0xBF80_0000, nan),
        (Lg2, 0x3F80_0000, 0),
        (Sin, infinity, nan),
        (Sin, minus, minus),
        (Cos, 0, 0x3F80_0000),
        (Tanh, 0xFF80_0000, 0xBF80_0000),
        (Tanh, minus, minus),
        (Rcp, minus, 0xFF80_0000),
        (Rcp, infinity, 0),
        (Sqrt, 0xBF80_0000, nan),
        (Sqrt, minus, minus),
        (Rsqrt, minus, 0xFF80_0000),
        (Rsqrt, 0xBF80_0000, nan),
        (Rsqrt, infinity, 0),
    ] {
        assert_eq!(correct(function, F32, false, bits), expected, "{function:?} of {bits:08x}");
    }
}

#[test]
fn subnormal_numbers_are_flushed_where_that_is_asked_for() {
    // 2^-130 as an argument, and as a result.
    assert_eq!(correct(Lg2, F32, false, 0x0008_0000), 0xC302_0000);
    assert_eq!(correct(Lg2, F32, true, 0x0008_0000), 0xFF80_0000);
    assert_eq!((correct(Ex2, F32, false, 0xC302_0000), correct(Ex2, F32, true, 0xC302_0000)), (0x0008_0000, 0));
}
