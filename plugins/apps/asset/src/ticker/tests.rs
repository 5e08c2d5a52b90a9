//! Tickers in the forms of other services and of people.

use super::{Given, given, is_foreign, normalize};

/// Usual forms, and other forms of the same tickers, separated by bars.
const USUAL: &[(&str, &str)] = &[
    ("AAPL", "aapl| AAPL |$AAPL|#AAPL|$AAPL$|(AAPL)|ＡＡＰＬ|＄ａａｐｌ|NASDAQ:AAPL"),
    ("AAPL", "NASDAQ: AAPL|NasdaqGS:AAPL|XNAS:AAPL|ＮＡＳＤＡＱ：ＡＡＰＬ|AAPL.US|AAPL US"),
    ("AAPL", "AAPL:US|AAPL-US|US.AAPL|usAAPL|AAPL US Equity|AAPL.O|AAPL.OQ|aapl.oq|AAPL.K"),
    ("AAPL", "usAAPL.OQ|AAPL UW|NASDAQ:AAPL.O|AAPL:NASDAQ|Aapl|Aapl.US"),
    ("AAPL", "gb_aapl|105.AAPL|OTCQX:AAPL"),
    ("UBER", "Uber|uber"),
    ("IBM", "Ibm"),
    ("BRK.B", "brk.b|BRK-B|brk-b|BRK/B|BRK_B|BRK B|BRK－B|BRK．B|BRK\u{2013}B|NYSE:BRK.B"),
    ("BRK.B", "NYSE:BRK-B|NYSE: BRK/B|BRK.B.N|BRK_B.N|BRKb.N|usBRK.B|BRK.B US"),
    ("BRK.B", "BRK/B US Equity|BRK-B.US|US.BRK.B|$BRK.B|BRK.B UN|BRK\u{b7}B|106.BRK_B|brk b"),
    ("BF.B", "BF-B|BF/B|bf.b"),
    ("SPY", "NYSEARCA:SPY|AMEX:SPY|ARCX:SPY|SPY.US|SPY UP|SPY.P"),
    ("CBOE", "BATS:CBOE|CBOE.US"),
    ("TCEHY", "OTC:TCEHY|OTCMKTS:TCEHY|TCEHY.PK|TCEHY.OB"),
    ("BABA", "BABA.N|BABA.K|usBABA|106.BABA|BABA ADR|baba.ads|BABA-ADR"),
    ("HEI.A", "hei.a|HEI.A.N|HEIa.N|NYSE:HEI.A"),
    ("BJ", "BJ|BJ US|BJ.N|US.BJ|NYSE:BJ"),
    ("0700.HK", "700.hk|0700.HK|00700.HK|0700.HKG|00700.XHKG|700 HK|700 HK Equity|00700"),
    ("0700.HK", "0700|００７００|HK00700|hk00700|HK0700|00700HK|HK700|HKEX:700|HKG:0700"),
    ("0700.HK", "SEHK:700|HK.00700|HK:700|HK 700|700:HK|0700-HK|0700。HK|０７００．ＨＫ"),
    ("0700.HK", "#0700.HK|700\u{a0}HK|\u{feff}0700.HK"),
    ("0700.HK", "116.00700|hk.00700|00700 HK|700 hk equity"),
    ("0105.HK", "105.HK"),
    ("0005.HK", "5.HK|5 HK|HKEX:5|00005|0005"),
    ("9988.HK", "09988|9988 HK|HK.9988"),
    ("80700.HK", "80700.HK|HK80700|80700 HK|HKEX:80700"),
    ("600519.SS", "600519|600519.sh|600519.SS|SH600519|sh600519|sh.600519|SH:600519"),
    ("600519.SS", "600519.XSHG|600519.SHA|SSE:600519|SHA:600519|SHSE.600519|600519.SSE"),
    ("600519.SS", "600519 CH|600519 CH Equity|600519 CG|600519-CN|CN:600519|600519SH"),
    ("600519.SS", "６００５１９|６００５１９．ＳＨ|ＳＨ６００５１９|$600519|#600519"),
    ("600519.SS", "600519 SH|1.600519"),
    ("000001.SZ", "000001|000001.sz|sz000001|SZ000001|sz.000001|SZSE:000001|000001 CH"),
    ("000001.SZ", "000001.XSHE|000001.SHE|SHE:000001|SZSE.000001|000001 CS|000001.SZSE"),
    ("000001.SZ", "0.000001|sz 000001|Sz000001"),
    ("920748.BJ", "920748|BJ920748|bj920748|bj.920748|920748.BJ|920748 CH|９２０７４８"),
    ("920748.BJ", "0.920748"),
    ("430047.BJ", "430047|BJ430047|430047.BJ|BJ:430047|bj430047"),
    ("830799.BJ", "830799|830799.bj"),
    ("899050.BJ", "899050.BJ|bj899050"),
    ("900901.SS", "900901|900901.SH|sh900901"),
    ("200002.SZ", "200002|200002.SZ|sz200002"),
    ("300750.SZ", "300750|300750.SZ"),
    ("688981.SS", "688981|688981.SH"),
    ("510300.SS", "510300|sh510300"),
    ("159915.SZ", "159915|sz159915"),
    ("113050.SS", "113050.SH|sh113050"),
    ("399001.SZ", "sz399001"),
    ("SAP.DE", "sap.de|SAP.DE"),
    ("7203.T", "7203.t"),
    ("BATS.L", "bats.l"),
    ("VOD.L", "vod.l"),
    ("SHOP.TO", "shop.to"),
    ("005930.KS", "005930.ks"),
    ("006208.TW", "006208.TW"),
];

#[test]
fn tickers_are_normalized_to_their_usual_form() {
    for (ticker, texts) in USUAL {
        for text in texts.split('|') {
            assert_eq!(given(text), Given::Whole((*ticker).to_owned()), "{text}");
            assert_eq!(normalize(text), *ticker, "{text}");
        }
        assert_eq!(normalize(ticker), *ticker);
    }
}

#[test]
fn only_suffixes_of_other_countries_are_foreign() {
    for text in ["VOD.L", "7203.t", "SAP.DE"] {
        assert!(is_foreign(text), "{text}");
    }
    for text in ["AAPL", "BRK-B", "SPY.P", "0700.HK", "600519", "920748", "LON:VOD", "JD.com"] {
        assert!(!is_foreign(text), "{text}");
    }
}

#[test]
fn short_numbers_can_be_hong_kong_codes() {
    for (text, ticker) in [
        ("700", "0700.HK"),
        ("9988", "9988.HK"),
        ("80700", "80700.HK"),
        ("７００", "0700.HK"),
        ("#700", "0700.HK"),
    ] {
        assert_eq!(given(text), Given::Number(ticker.to_owned()), "{text}");
        assert_eq!(normalize(text), ticker, "{text}");
    }
}

/// Texts that look like codes, separated by bars.
const UNCERTAIN: &str = "BRKb|BACpL|BTC-USD|BAC-L|bac-l|BAC-B|JPM-C|jpm-c|JPM/C|JPM_C|JPM C\
    |JPM-C.N|NYSE:JPM-C|HEI-A|PLAN B|PSTH.U|Apple|Visa|BofA|Apple.US|NASDAQ:Apple|Sony.T|JD.com\
    |JD.COM|Amazon.com|Booking.com|C3.ai|St.Joe|TSMC.ADR|0.600519|1.000001|0.5|116.5|832000.NQ\
    |110011.OF|600519.DE|r_hk00700|LON:VOD|lon:vod|VOD LN|VOD LN Equity|vod ln equity|7203 JP\
    |TYO:7203|BSE:500325|12|0000|000700.HK|113050|110011|005827|204001|399001|899050|sh899050\
    |880001|889001|820011|810011|400001|420001|BJ400001|1234567|600519.SZ|000001.SH|sh000001\
    |920748.SS|sh920748|600519.N|NASDAQ:600519|HKEX:AAPL|AAPL.HK|600519..SS|600519.SS.|600519/SS/X\
    |６００５１９．ＳＺ";

#[test]
fn uncertain_codes_stay_as_written() {
    for text in UNCERTAIN.split('|') {
        assert_eq!(given(text), Given::Unsure(text.to_owned()), "{text}");
        assert_eq!(normalize(text), text);
    }
}

#[test]
fn indices_and_isins_are_not_changed() {
    for text in ["^GSPC", "^hsi", "US0378331005", "HK0000069689", "CNE0000018R8"] {
        assert_eq!(given(text), Given::Other(text.to_owned()), "{text}");
        assert_eq!(normalize(&format!(" {text} ")), text);
    }
}

#[test]
fn words_and_empty_texts_are_no_tickers() {
    let words = "TENCENT|tencent|Tencent|腾讯|tencent.hk|Coca-Cola|7-Eleven|US Steel|Plan B\
        |TSMC ADR";
    for text in words.split('|') {
        assert_eq!(given(text), Given::Name, "{text}");
        assert_eq!(normalize(text), text);
    }
    for text in ["", " ", "?", "-", "$", "UNKNOWN", "unknown", "N/A", "null", "无"] {
        assert_eq!(given(text), Given::None, "{text}");
        assert_eq!(normalize(text), text.trim());
    }
}
