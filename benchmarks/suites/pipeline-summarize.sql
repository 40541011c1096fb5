-- The pipeline's summaries in SQL: one table for each COPY. pipeline.py fills in what is in braces.
-- Minutes are numbers, since 1970; quantiles are exact, where the pipeline's are binned.

SET threads = {threads};
SET memory_limit = '{memory}ib';
SET temp_directory = '{spill}';
SET preserve_insertion_order = false;
SET TimeZone = 'UTC';

CREATE VIEW operations AS
SELECT *, epoch_us(started) AS started_us, started_us + waited_us AS ended_us
FROM read_parquet({operations}, hive_partitioning = false);

CREATE VIEW checks AS
SELECT * FROM read_parquet({checks}, hive_partitioning = false);

COPY (
    SELECT
        * EXCLUDE (waits),
        waits[1] AS wait_p50_us,
        waits[2] AS wait_p90_us,
        waits[3] AS wait_p99_us,
        waits[4] AS wait_p999_us
    FROM (
        SELECT
            ended_us // 60_000_000 AS minute,
            purgatory,
            kind,
            count(*) AS operations,
            count(*) FILTER (outcome = 'completed') AS completed,
            count(*) FILTER (outcome = 'expired') AS expired,
            count(*) FILTER (outcome = 'cancelled') AS cancelled,
            count(*) FILTER (outcome = 'failed') AS failed,
            -- Together, since each would keep all waits.
            quantile_cont(waited_us, [0.5, 0.9, 0.99, 0.999]) AS waits,
            quantile_cont(lateness_us, 0.99) AS lateness_p99_us,
            sum(tries) / count(*) AS tries_per_operation
        FROM operations GROUP BY ALL
    )
) TO '{tables}/minutes.parquet' (FORMAT parquet);

COPY (
    WITH changes AS (
        SELECT purgatory, kind, started_us AS us, 1 AS change FROM operations
        UNION ALL
        SELECT purgatory, kind, ended_us AS us, -1 AS change FROM operations
    ),
    net AS (
        SELECT purgatory, kind, us, sum(change)::BIGINT AS change FROM changes GROUP BY ALL
    ),
    swept AS (
        SELECT *, sum(change) OVER (PARTITION BY purgatory, kind ORDER BY us)::BIGINT AS pending FROM net
    ),
    -- The first and the last minute count as far as the journal covers them.
    covered AS (
        SELECT min(us) AS since, max(us) AS until
        FROM (SELECT us FROM net UNION ALL SELECT epoch_us(checked) FROM checks)
    ),
    by_minute AS (
        SELECT
            us // 60_000_000 AS minute,
            purgatory,
            kind,
            max(greatest(pending, CASE WHEN us % 60_000_000 > 0 THEN pending - change END)) AS pending_max,
            arg_min(pending - change, us) * 60_000_000 + sum(change * (60_000_000 - us % 60_000_000)) AS area,
            arg_max(pending, us) AS pending_last
        FROM swept GROUP BY ALL
    )
    SELECT
        minute,
        purgatory,
        kind,
        pending_max,
        area / greatest(
            least(until, (minute + 1) * 60_000_000) - greatest(since, minute * 60_000_000), 1
        ) AS pending_mean,
        pending_last
    FROM by_minute, covered
) TO '{tables}/pending.parquet' (FORMAT parquet);

COPY (
    WITH by_key AS (
        SELECT
            purgatory,
            key,
            count(*) AS operations,
            sum(waited_us)::BIGINT AS waited_us,
            sum(tries - (outcome = 'completed')::INT)::BIGINT AS wasted_tries
        FROM (SELECT *, unnest(list_distinct(keys)) AS key FROM operations) GROUP BY ALL
    ),
    measured AS (
        SELECT *, unnest(['operations', 'waited_us', 'wasted_tries']) AS measure,
            unnest([operations, waited_us, wasted_tries]) AS amount
        FROM by_key
    )
    SELECT purgatory, measure AS "by", row_number() OVER ranking AS rank,
        key, operations, waited_us, wasted_tries
    FROM measured WHERE amount > 0
    WINDOW ranking AS (PARTITION BY purgatory, measure ORDER BY amount DESC, key)
    QUALIFY rank <= {hottest}
) TO '{tables}/hottest_keys.parquet' (FORMAT parquet);

COPY (
    SELECT
        epoch_us(checked) // 60_000_000 AS minute,
        purgatory,
        count(*) AS checks,
        sum(tried)::BIGINT AS tried,
        sum(completed)::BIGINT AS completed,
        quantile_cont(tried, 0.5) AS tried_p50,
        quantile_cont(tried, 0.99) AS tried_p99,
        max(tried) AS tried_max
    FROM checks GROUP BY ALL
) TO '{tables}/fan_out.parquet' (FORMAT parquet);
