"""Words of the SQL that a query may use: reserved names, joins, operators and functions."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: First words of statements that change something.
CHANGES = _words(
    """
    ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DETACH DROP EXECUTE
    EXPORT IMPORT INSERT INSTALL LOAD MERGE PRAGMA PREPARE RENAME REPLACE RESET ROLLBACK SET TRUNCATE UPDATE USE
    VACUUM
    """
)
#: Bare words with a part in the grammar; as a name, each needs double quotes.
RESERVED = _words(
    """
    ALL AND ANTI ANY ARRAY AS ASOF BETWEEN BY CASE CAST CROSS DISTINCT ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH
    FOR FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT INTO IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT
    NULL OFFSET ON OR ORDER OUTER OVER PIVOT QUALIFY RIGHT RLIKE SELECT SEMI SIMILAR SOME TABLE TABLESAMPLE THEN
    TRUE UNION UNPIVOT USING VALUES WHEN WHERE WINDOW WITH XOR
    """
)
#: Reserved words that turn the next word into a relation or a file.
BANNED = _words("ASOF INTO LATERAL MINUS PIVOT RECURSIVE TABLE TABLESAMPLE UNPIVOT")
#: Words with a part in the grammar in some places, and names in all others.
IN_PLACES = _words(
    """
    ASC AT BOTH CURRENT CURRENT_DATE CURRENT_TIMESTAMP DATE DAY DESC EXCLUDE FIRST FOLLOWING GROUPS HOUR IGNORE
    INTERVAL LAST LEADING MINUTE MONTH NAME NEXT NULLS ONLY ORDINALITY PARTITION PRECEDING PRECISION RANGE REGEXP
    RENAME REPLACE RESPECT ROW ROWS SECOND SETS TIME TIMESTAMP TO TRAILING UNBOUNDED UNKNOWN UNSIGNED WEEK WITHIN
    YEAR ZONE QUARTER FILTER GROUPING
    """
)
#: Words that a bracket may follow, beside functions.
BEFORE_BRACKETS = _words(
    """
    ALL AND ANY AS BETWEEN BY CASE CAST CHAR CUBE DECIMAL DISTINCT ELSE ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FILTER
    FLOAT FROM GROUP HAVING ILIKE IN INTERSECT IS LIKE LIMIT NOT NUMERIC OFFSET ON OR OVER POSITION QUALIFY REGEXP
    RENAME RLIKE ROLLUP SELECT SETS SIMILAR SOME THEN TIME TIMESTAMP TO TRY_CAST UNION USING VALUES VARCHAR WHEN
    WHERE XOR
    """
)
TYPES = _words(
    """
    BIGINT BINARY BLOB BOOL BOOLEAN BYTEA CHAR DATE DATETIME DECIMAL DOUBLE FLOAT FLOAT4 FLOAT8 HUGEINT INT INT1
    INT2 INT4 INT8 INT16 INT32 INT64 INT128 INTEGER INTERVAL JSON NUMERIC REAL SMALLINT STRING TEXT TIME
    TIMESTAMP TIMESTAMPTZ TINYINT UBIGINT UHUGEINT UINT1 UINT2 UINT4 UINT8 UINT16 UINT32 UINT64 UINTEGER
    USMALLINT UTINYINT VARBINARY VARCHAR
    """
)
#: Functions that give a value for values: those of polars, and of DuckDB what is asked of runs. None opens anything.
FUNCTIONS = _words(
    """
    abs acos acosd approx_quantile array_agg array_contains array_dot_product array_get array_inner_product
    array_length array_lower array_mean array_reverse array_sum array_to_string array_unique array_upper asin
    asind atan atan2 atan2d atand avg bit_and bit_count bit_length bit_not bit_or bit_xor cbrt ceil ceiling
    char_length character_length coalesce columns concat concat_ws corr cos cosd cot cotd count covar covar_pop
    covar_samp cume_dist date date_part date_trunc datetime day dayofmonth dayofweek dayofyear degrees
    dense_rank div ends_with exp first first_value floor greatest group_concat hour if ifnull initcap lag last
    last_value lead least left length listagg ln log log10 log1p log2 lower lpad ltrim max median min minute mod
    month normalize now nth_value ntile nullif octet_length percent_rank pi pow power quantile_cont
    quantile_disc quarter radians rank regexp_like regexp_replace replace reverse right round row_number rpad
    rtrim second sign sin sind split_part sqrt starts_with stddev stddev_samp stdev stdev_samp strftime
    string_agg string_to_array strpos strptime substr substring sum tan tand time timestamp trim trunc truncate
    unnest upper var var_samp variance week xor year any_value approx_count_distinct arg_max arg_min bool_and
    bool_or contains count_if epoch epoch_ms epoch_ns histogram instr isfinite isinf isnan json_extract
    json_extract_string kurtosis len list list_contains mad make_timestamp max_by min_by mode percentile_cont
    percentile_disc quantile regexp_extract regexp_matches skewness stddev_pop string_split to_timestamp var_pop
    """
)
