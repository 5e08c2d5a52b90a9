//! Sizes that the server computes, so that it does not send rows that exceed the limit of a read.

/// The SQL expression for the first bytes of the packed record in a column. These bytes contain the
/// length of the JSON of the record. If the server stores the value outside of its row, it reads
/// only the beginning of the value.
macro_rules! record_start {
    ($column:literal) => {
        concat!("substring(", $column, " FROM 1 FOR 5)")
    };
}

/// The SQL expression for the uncompressed JSON length, in bytes, of the packed (possibly
/// compressed) record in a column. The query must select the record's first bytes, by
/// `record_start!`, as `start`.
macro_rules! record_bytes {
    ($column:literal) => {
        concat!(
            "CASE WHEN octet_length(start) = 5 AND get_byte(start, 0) = 1
                THEN get_byte(start, 1) + (get_byte(start, 2) << 8) + (get_byte(start, 3) << 16)
                    + (get_byte(start, 4)::bigint << 24)
                ELSE octet_length(",
            $column,
            ") END"
        )
    };
}

pub(super) use record_bytes;
pub(super) use record_start;
