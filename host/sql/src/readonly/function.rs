//! Classifies functions by their effects.

/// Functions that read files, wait, change the session or its environment, signal other sessions,
/// access large objects, run dynamic SQL, or generate gigabytes of data. A name that ends in `*`
/// matches every function whose name begins with it.
const FORBIDDEN: &[&str] = &[
    "connectby*",
    "crosstab*",
    "current_setting",
    "currval",
    "cursor_to_xml*",
    "database_to_xml*",
    "dblink*",
    "edit",
    "eval",
    "fsdir",
    "fts3_tokenizer",
    "lastval",
    "lo_*",
    "load_extension",
    "load_file",
    "loread",
    "lowrite",
    "nextval",
    "pg_advisory_*",
    "pg_backend_*",
    "pg_backup_*",
    "pg_cancel_backend",
    "pg_copy_*",
    "pg_create_*",
    "pg_current_logfile",
    "pg_drop_*",
    "pg_export_snapshot",
    "pg_file_*",
    "pg_get_shmem*",
    "pg_hba_file_rules",
    "pg_import_*",
    "pg_log_*",
    "pg_logfile*",
    "pg_logical_*",
    "pg_ls_*",
    "pg_notify",
    "pg_promote",
    "pg_read_*",
    "pg_reload_conf",
    "pg_replication_*",
    "pg_rotate_logfile",
    "pg_show_all_*",
    "pg_sleep*",
    "pg_stat_*",
    "pg_start_*",
    "pg_stop_*",
    "pg_switch_wal",
    "pg_terminate_backend",
    "pg_try_advisory_*",
    "pg_wal_*",
    "plpgsql*",
    "query_to_xml*",
    "randomblob",
    "readfile",
    "schema_to_xml*",
    "set_config",
    "setval",
    "sqlite_*",
    "table_to_xml*",
    "ts_rewrite",
    "ts_stat",
    "txid_*",
    "writefile",
    "xpath_table",
    "zeroblob",
    "zipfile",
];

/// Functions of SQLite, PostgreSQL or both that have no effects and need at most a few times the
/// memory of their arguments. `jsonb_path_query` is not in this list: each `[0, 0]` in a path
/// doubles the result, and 30 of these took 2 GB in 5 s.
const HARMLESS: &str = "
    abs acos age any_value array_agg array_append array_length array_position array_remove
    array_to_json array_to_string ascii asin atan atan2 avg bit_and bit_length bit_or bool_and
    bool_or btrim cardinality cast cbrt ceil ceiling changes char char_length character_length
    chr coalesce concat concat_ws convert corr cos cot count covar_pop covar_samp cume_dist
    current_date current_time current_timestamp date date_bin date_part date_trunc datetime
    decode degrees dense_rank div encode every exists exp extract first_value floor gcd
    generate_series generate_subscripts glob greatest group_concat grouping hex if ifnull iif
    initcap instr isfinite json json_agg json_array json_array_elements json_array_elements_text
    json_array_length json_build_array json_build_object json_each json_each_text json_extract
    json_extract_path json_extract_path_text json_group_array json_group_object json_object
    json_object_agg json_object_keys json_quote json_to_record json_to_recordset json_tree
    json_type json_typeof json_valid jsonb_agg jsonb_array_elements jsonb_array_elements_text
    jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys
    jsonb_to_record jsonb_to_recordset jsonb_tree jsonb_typeof julianday justify_days
    justify_hours justify_interval lag last_value lcm lead least left length like likelihood
    likely ln localtime localtimestamp log log10 log2 lower ltrim make_date make_interval
    make_time make_timestamp max md5 median min mod mode now nth_value ntile nullif num_nonnulls
    num_nulls octet_length overlay percent_rank percentile_cont percentile_disc pi position pow
    power quote radians random rank regexp_count regexp_instr regexp_like regexp_match
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope replace reverse right round
    row row_number row_to_json rtrim sign sin soundex split_part sqrt starts_with
    statement_timestamp stddev stddev_pop stddev_samp strftime string_agg string_to_array
    string_to_table strpos substr substring sum tan time timediff timezone to_char to_date
    to_json to_jsonb to_number to_timestamp total translate trim trunc typeof unicode unixepoch
    unlikely unnest upper var_pop var_samp variance width_bucket
";

/// Returns true if a query of a plugin must not call the function. The name must be in lower case.
pub(crate) fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    })
}

/// Returns true if the function is known to be harmless. The name must be in lower case.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.split_whitespace().any(|known| known == name)
}
