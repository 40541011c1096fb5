-- What `compact` makes of a journal, in SQL. pipeline.py fills in what is in braces.
-- The reasons for which rows are refused are those of purgatory.pipeline.transforms.validation.

SET threads = {threads};
SET memory_limit = '{memory}ib';
SET temp_directory = '{spill}';
SET preserve_insertion_order = false;
SET TimeZone = 'UTC';

CREATE MACRO in_range(instant) AS epoch_us(instant) BETWEEN 0 AND 253_402_214_400_000_000;

CREATE VIEW operations AS
SELECT *, CASE
    WHEN node IS NULL THEN 'node is null'
    WHEN purgatory IS NULL THEN 'purgatory is null'
    WHEN operation_id IS NULL THEN 'operation_id is null'
    WHEN kind IS NULL THEN 'kind is null'
    WHEN keys IS NULL THEN 'keys is null'
    WHEN list_count(keys) < len(keys) THEN 'keys holds a null'
    WHEN started IS NULL THEN 'started is null'
    WHEN waited_us IS NULL THEN 'waited_us is null'
    WHEN outcome IS NULL THEN 'outcome is null'
    WHEN tries IS NULL THEN 'tries is null'
    WHEN NOT in_range(started) THEN 'started is not in the years from 1970 to 9998'
    WHEN kind = '' THEN 'kind is empty'
    WHEN outcome NOT IN ('completed', 'expired', 'cancelled', 'failed') THEN 'outcome is none of those'
    WHEN tries < 1 THEN 'tries is below 1'
    WHEN timeout_us < 0 THEN 'timeout_us is negative'
    WHEN waited_us < 0 THEN 'waited_us is negative'
    WHEN lateness_us < 0 THEN 'lateness_us is negative'
    WHEN waited_us > 253_402_214_400_000_000 - epoch_us(started) THEN 'it ended after the year 9998'
    WHEN lateness_us IS NOT NULL AND (outcome != 'expired' OR timeout_us IS NULL)
        THEN 'lateness_us is given, but its timeout did not expire'
    WHEN lateness_us > waited_us THEN 'lateness_us is more than waited_us'
END AS reason
FROM read_parquet('{journal}/operations/*.parquet', filename = true, file_row_number = true);

CREATE VIEW checks AS
SELECT *, CASE
    WHEN node IS NULL THEN 'node is null'
    WHEN purgatory IS NULL THEN 'purgatory is null'
    WHEN key IS NULL THEN 'key is null'
    WHEN checked IS NULL THEN 'checked is null'
    WHEN tried IS NULL THEN 'tried is null'
    WHEN completed IS NULL THEN 'completed is null'
    WHEN NOT in_range(checked) THEN 'checked is not in the years from 1970 to 9998'
    WHEN tried < 0 THEN 'tried is negative'
    WHEN completed < 0 THEN 'completed is negative'
    WHEN completed > tried THEN 'completed is more than tried'
END AS reason
FROM read_parquet('{journal}/checks/*.parquet', filename = true, file_row_number = true);

COPY (
    SELECT * EXCLUDE (filename, file_row_number, reason), started::DATE AS date
    FROM operations
    WHERE reason IS NULL
    QUALIFY row_number() OVER (
        PARTITION BY node, purgatory, operation_id ORDER BY filename, file_row_number) = 1
) TO '{clean}/operations' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date));

COPY (
    SELECT * EXCLUDE (filename, file_row_number, reason), checked::DATE AS date
    FROM checks
    WHERE reason IS NULL
) TO '{clean}/checks' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date));

COPY (
    SELECT filename AS source, file_row_number AS position, reason, to_json(operations) AS row
    FROM operations WHERE reason IS NOT NULL
    UNION ALL
    SELECT filename, file_row_number, reason, to_json(checks)
    FROM checks WHERE reason IS NOT NULL
) TO '{clean}/quarantine.parquet' (FORMAT parquet, COMPRESSION zstd);

COPY (
    SELECT filename AS source, count(*) AS rows, count(reason) AS quarantined FROM operations GROUP BY ALL
    UNION ALL
    SELECT filename, count(*), count(reason) FROM checks GROUP BY ALL
) TO '{clean}/segments.parquet' (FORMAT parquet, COMPRESSION zstd);
