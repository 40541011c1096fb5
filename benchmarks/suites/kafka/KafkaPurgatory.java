import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Does the work of one benchmark with Kafka's purgatory or its timer, as the suites in Python do it with this
 * library. The arguments are the work, the seconds to warm up and to measure, and whole numbers. The output has a
 * line for each figure: a name and a number.
 *
 * <p>Costs are processor time of the whole process: of the thread that parks and checks, of Kafka's threads, which
 * expire and purge, and of the JVM's own.
 */
public final class KafkaPurgatory {
    static final int WAITS_PER_KEY = 10;
    static final int KEYS = 3;
    static final int BATCH = 1_000;
    static final int EXPIRIES = 3;
    static final long TIMEOUT = 30_000;
    static final double SECOND = 1e9;
    static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    record Key(int number) implements DelayedOperationKey {
        @Override public String keyLabel() { return "key"; }
    }

    /** The condition of all waits, and their outcomes. Of those that expire: when, and how late, in nanoseconds. */
    static final class Tally {
        boolean ready;
        int completed;
        final long[] deadlines;
        final long[] late;
        final CountDownLatch left;

        Tally(int expiring) {
            deadlines = new long[expiring];
            late = new long[expiring];
            left = new CountDownLatch(expiring);
        }

        void expire(int request) {
            late[request] = System.nanoTime() - deadlines[request];
            left.countDown();
        }
    }

    /** A user's operation: a condition, and two fields of its own. */
    static final class Wait extends DelayedOperation {
        final int request;
        Tally tally;

        Wait(long milliseconds, int request, Tally tally) {
            super(milliseconds);
            this.request = request;
            this.tally = tally;
        }

        @Override
        public boolean tryComplete() {
            if (tally.ready) {
                forceComplete();
            }
            return tally.ready;
        }

        @Override public void onComplete() { tally.completed++; }

        @Override public void onExpiration() { tally.expire(request); }
    }

    static TimerTask timeout(long milliseconds) {
        return new TimerTask(milliseconds) {
            @Override public void run() {}
        };
    }

    /** A part of the work, which returns how often it has done what is measured. */
    interface Round {
        int run() throws Exception;
    }

    static double warmUp;
    static double seconds;
    static DelayedOperationPurgatory<Wait> purgatory;

    public static void main(String[] arguments) {
        int status = 1;
        try {
            work(arguments);
            status = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        }
        // Kafka's threads would go on.
        System.exit(status);
    }

    static void work(String[] arguments) throws Exception {
        warmUp = Double.parseDouble(arguments[1]);
        seconds = Double.parseDouble(arguments[2]);
        int[] numbers = Arrays.stream(arguments).skip(3).mapToInt(Integer::parseInt).toArray();
        purgatory = new DelayedOperationPurgatory<>("benchmark", 0);
        switch (arguments[0]) {
            case "parking" -> parking(numbers[0], numbers[1]);
            case "turnover" -> turnover(numbers[0], numbers[1]);
            case "expiry" -> expiry(numbers[0]);
            case "timers" -> timers(numbers[0]);
            case "memory" -> memory(numbers[0], numbers[1]);
            case "stale" -> stale(numbers[0]);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        print("java", Runtime.version().feature());
    }

    static void print(String name, double figure) {
        System.out.printf(Locale.ROOT, "%s %f%n", name, figure);
    }

    /** Microseconds of processor time each, once it is warm. */
    static double cost(Round round) throws Exception {
        repeat(warmUp, round);
        long start = SYSTEM.getProcessCpuTime();
        long times = repeat(seconds, round);
        return (SYSTEM.getProcessCpuTime() - start) / 1e3 / times;
    }

    /** Repeats until so many seconds of processor time are spent. Returns how often it was done. */
    static long repeat(double seconds, Round round) throws Exception {
        long start = SYSTEM.getProcessCpuTime();
        long times = 0;
        do {
            times += round.run();
        } while (SYSTEM.getProcessCpuTime() - start < seconds * SECOND);
        return times;
    }

    static List<Key> keys(int first, int count) {
        return IntStream.range(first, first + count).mapToObj(Key::new).toList();
    }

    /** The keys of each wait, in turns. Waits that share one key share all. */
    static List<List<Key>> targets(int waits, int keys, int perKey) {
        int distinct = (waits + perKey - 1) / perKey;
        List<List<Key>> targets = new ArrayList<>(waits);
        for (int at = 0; at < waits; at++) {
            targets.add(at < distinct ? keys(at * keys, keys) : targets.get(at - distinct));
        }
        return targets;
    }

    static Tally park(List<List<Key>> targets) {
        Tally tally = new Tally(0);
        for (int at = 0; at < targets.size(); at++) {
            purgatory.tryCompleteElseWatch(new Wait(TIMEOUT, at, tally), targets.get(at));
        }
        return tally;
    }

    static void expect(int completed, int expected) {
        if (completed != expected) {
            throw new AssertionError(completed + " waits completed, instead of " + expected);
        }
    }

    /** So many waits are parked, and all complete. */
    static void parking(int keys, int size) throws Exception {
        List<List<Key>> targets = targets(size, keys, WAITS_PER_KEY);
        List<List<Key>> signals = targets.subList(0, (size + WAITS_PER_KEY - 1) / WAITS_PER_KEY);
        print("us", cost(() -> {
            Tally tally = park(targets);
            tally.ready = true;
            signals.forEach(target -> purgatory.checkAndComplete(target.get(0)));
            expect(tally.completed, size);
            return size;
        }));
    }

    /** Waits on three keys of their own: whenever more than so many wait, the oldest one completes. */
    static void turnover(int checked, int outstanding) throws Exception {
        // Keys are used again, as most keys are, but not while a wait watches them.
        int used = outstanding + 2 * BATCH;
        List<List<Key>> targets = targets(used, KEYS, 1);
        Wait[] waits = new Wait[used];
        Tally pending = new Tally(0);
        Tally ready = new Tally(0);
        ready.ready = true;
        int[] parked = {0};
        Round batch = () -> {
            for (int trip = 0; trip < BATCH; trip++) {
                int at = parked[0] % used;
                waits[at] = new Wait(TIMEOUT, 0, pending);
                purgatory.tryCompleteElseWatch(waits[at], targets.get(at));
                if (parked[0]++ >= outstanding) {
                    int oldest = (at + used - outstanding) % used;
                    waits[oldest].tally = ready;
                    for (Key key : targets.get(oldest).subList(0, checked)) {
                        purgatory.checkAndComplete(key);
                    }
                }
            }
            return BATCH;
        };
        double spent = cost(batch);
        print("us", spent);
        print("per_second", 1e6 / spent);
        // To count the entries takes time, so this comes after the measurement.
        List<Integer> held = new ArrayList<>();
        repeat(seconds, () -> {
            repeat(0.02, batch);
            held.add(purgatory.watched());
            return 1;
        });
        print("held", held.stream().mapToInt(Integer::intValue).average().orElseThrow());
        expect(ready.completed, parked[0] - outstanding);
    }

    /** So many waits expire, spread evenly over some seconds. Kafka's timeouts are whole milliseconds. */
    static void expiry(int size) throws Exception {
        List<List<Key>> targets = targets(size, 1, WAITS_PER_KEY);
        Tally tally = null;
        double perSecond = 0;
        double lead = 0.1 + 2e-6 * size;
        // The last round counts. One in which a wait is due before all are parked does not.
        for (int round = 0; round < EXPIRIES; round++) {
            tally = new Tally(size);
            long first = System.nanoTime() + (long) (lead * SECOND);
            for (int at = 0; at < size; at++) {
                long now = System.nanoTime();
                long milliseconds = (first + (long) (seconds * SECOND * at / size) - now) / 1_000_000;
                tally.deadlines[at] = now + milliseconds * 1_000_000;
                purgatory.tryCompleteElseWatch(new Wait(milliseconds, at, tally), targets.get(at));
            }
            if (System.nanoTime() > first) {
                lead *= 2;
                round--;
            }
            tally.left.await();
            perSecond = size / ((System.nanoTime() - first) / SECOND);
        }
        Arrays.sort(tally.late);
        print("late_p50_ms", tally.late[size / 2] / 1e6);
        print("late_p99_ms", tally.late[(int) (size * 0.99)] / 1e6);
        print("late_max_ms", tally.late[size - 1] / 1e6);
        print("early", Arrays.stream(tally.late).filter(each -> each < 0).count());
        print("expired_per_s", perSecond);
    }

    /** Timeouts of one to two minutes are added, and cancelled in random order, while so many are pending. */
    static void timers(int pending) throws Exception {
        SystemTimerReaper timer = new SystemTimerReaper("reaper", new SystemTimer("benchmark"));
        // Drawn before: the draws are no part of the cost.
        long[] delays = new Random(1).longs(Math.max(pending, 100 * BATCH), 60_000, 120_000).toArray();
        for (int at = 0; at < pending; at++) {
            timer.add(timeout(delays[at]));
        }
        List<Integer> order = new ArrayList<>(IntStream.range(0, BATCH).boxed().toList());
        Collections.shuffle(order, new Random(1));
        TimerTask[] added = new TimerTask[BATCH];
        int[] next = {0};
        print("us", cost(() -> {
            for (int at = 0; at < BATCH; at++) {
                timer.add(added[at] = timeout(delays[next[0]++ % delays.length]));
            }
            order.forEach(at -> added[at].cancel());
            return BATCH;
        }));
        expect(timer.size(), pending);
    }

    static void memory(int keys, int size) {
        // What is made once exists before.
        park(targets(100, keys, WAITS_PER_KEY));
        List<List<Key>> targets = targets(size, keys, WAITS_PER_KEY);
        long before = heap();
        park(targets);
        print("bytes", (double) (heap() - before) / targets.size());
    }

    /** What the collector left. Afterwards, each thread reserves megabytes before it needs them. */
    static long heap() {
        System.gc();
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .mapToLong(pool -> pool.getCollectionUsage().getUsed())
                .sum();
    }

    /** Waits complete by a key of their own. Then the key that they share is checked. */
    static void stale(int size) throws Exception {
        Key shared = new Key(-1);
        List<List<Key>> targets = keys(0, size).stream().map(key -> List.of(key, shared)).toList();
        double[] sums = new double[3];
        Round round = () -> {
            Tally tally = park(targets);
            tally.ready = true;
            targets.forEach(target -> purgatory.checkAndComplete(target.get(0)));
            expect(tally.completed, size);
            sums[0] += purgatory.watched();
            long start = System.nanoTime();
            purgatory.checkAndComplete(shared);
            sums[1] += (System.nanoTime() - start) / 1e3;
            return 1;
        };
        repeat(warmUp, round);
        Arrays.fill(sums, 0);
        long rounds = repeat(seconds, round);
        print("visited", sums[0] / rounds);
        print("us", sums[1] / rounds);
    }
}
