//! Functions of Flink 1.20 that there are not here.

/// What a function is, if it needs more than a row.
pub(in crate::query) fn beyond_rows(name: &str) -> Option<&'static str> {
    const AGGREGATES: &[&str] = &[
        "AVG",
        "COLLECT",
        "COUNT",
        "FIRST_VALUE",
        "JSON_ARRAYAGG",
        "JSON_OBJECTAGG",
        "LAST_VALUE",
        "LISTAGG",
        "MAX",
        "MIN",
        "STDDEV",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "SUM",
        "VARIANCE",
        "VAR_POP",
        "VAR_SAMP",
        "APPROX_COUNT_DISTINCT",
        "ARRAY_AGG",
        "SINGLE_VALUE",
        "GROUPING",
        "GROUPING_ID",
        "GROUP_ID",
        "PERCENTILE",
    ];
    const WINDOWS: &[&str] =
        &["CUME_DIST", "DENSE_RANK", "LAG", "LEAD", "NTH_VALUE", "NTILE", "PERCENT_RANK", "RANK", "ROW_NUMBER"];
    const TABLES: &[&str] = &[
        "CUMULATE",
        "HOP",
        "HOP_END",
        "HOP_PROCTIME",
        "HOP_ROWTIME",
        "HOP_START",
        "SESSION",
        "SESSION_END",
        "SESSION_PROCTIME",
        "SESSION_ROWTIME",
        "SESSION_START",
        "TUMBLE",
        "TUMBLE_END",
        "TUMBLE_PROCTIME",
        "TUMBLE_ROWTIME",
        "TUMBLE_START",
        "UNNEST",
        "MATCH_PROCTIME",
        "MATCH_ROWTIME",
        "CURRENT_WATERMARK",
    ];
    if AGGREGATES.contains(&name) {
        Some("an aggregate")
    } else if WINDOWS.contains(&name) {
        Some("a window function")
    } else if TABLES.contains(&name) {
        Some("a function of windows or tables")
    } else {
        None
    }
}

/// Whether Flink has a function of rows by this name.
pub(super) fn is_of_flink(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "ARRAY",
        "ARRAY_APPEND",
        "ARRAY_CONCAT",
        "ARRAY_DISTINCT",
        "ARRAY_EXCEPT",
        "ARRAY_INTERSECT",
        "ARRAY_JOIN",
        "ARRAY_MAX",
        "ARRAY_MIN",
        "ARRAY_POSITION",
        "ARRAY_PREPEND",
        "ARRAY_REMOVE",
        "ARRAY_REVERSE",
        "ARRAY_SLICE",
        "ARRAY_SORT",
        "ARRAY_UNION",
        "CURRENT_DATABASE",
        "JSON_ARRAY",
        "JSON_OBJECT",
        "JSON_STRING",
        "MAP",
        "MAP_ENTRIES",
        "MAP_FROM_ARRAYS",
        "MAP_KEYS",
        "MAP_UNION",
        "MAP_VALUES",
        "ROW",
        "SPLIT",
        "STR_TO_MAP",
        "TRANSLATE3",
        "TYPEOF",
        "SOURCE_WATERMARK",
    ];
    NAMES.contains(&name)
}

/// What other databases call a function of Flink.
pub(super) fn called_otherwise(name: &str) -> Option<&'static str> {
    Some(match name {
        "LENGTH" | "LEN" => "CHAR_LENGTH",
        "NVL" | "ISNULL" => "IFNULL",
        "IIF" => "IF",
        "UCASE" => "UPPER",
        "LCASE" => "LOWER",
        "STRPOS" | "CHARINDEX" => "LOCATE",
        "TO_CHAR" => "DATE_FORMAT",
        "STR_TO_DATE" => "TO_DATE",
        "DATEADD" | "DATE_ADD" => "TIMESTAMPADD",
        "DATEDIFF" | "DATE_DIFF" => "TIMESTAMPDIFF",
        "CURDATE" => "CURRENT_DATE",
        "CURTIME" => "CURRENT_TIME",
        "GETDATE" | "SYSDATE" => "CURRENT_TIMESTAMP",
        "POW" => "POWER",
        "REGEXP_LIKE" => "REGEXP",
        "RANDOM" => "RAND",
        _ => return None,
    })
}
