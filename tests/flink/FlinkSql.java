import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Reads groups of expressions from standard input, one JSON object a line, and answers of each expression its type and
 * what it makes of each row. The rows come from a file, so that Flink cannot work anything out when it plans.
 */
public class FlinkSql {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(new FlinkSql(JSON.readTree(line)).answers()));
        }
    }

    final TableEnvironment env;
    final JsonNode group;
    final int rows;
    final ObjectNode[] answers;

    FlinkSql(JsonNode group) throws Exception {
        this.group = group;
        rows = group.get("rows").size();
        answers = new ObjectNode[group.get("cases").size()];
        Configuration options = new Configuration();
        options.setString("parallelism.default", "1");
        options.setString("restart-strategy.type", "none");
        // Each job has a cluster of its own, whose memory is not given back before the next one.
        options.setString("taskmanager.memory.managed.size", "8m");
        options.setString("taskmanager.memory.network.min", "8m");
        options.setString("taskmanager.memory.network.max", "8m");
        env = TableEnvironment.create(
                EnvironmentSettings.newInstance().inBatchMode().withConfiguration(options).build());
        env.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        List<String> all = new ArrayList<>();
        for (int row = 0; row < rows; row++) {
            all.add(JSON.writeValueAsString(group.get("rows").get(row)));
            table("row" + row, List.of(all.get(row)));
        }
        table("source", all);
    }

    void table(String name, List<String> lines) throws Exception {
        Path file = Files.createTempFile("flink-sql", ".json");
        file.toFile().deleteOnExit();
        Files.write(file, lines);
        List<String> columns = new ArrayList<>();
        group.get("schema").forEach(column -> columns.add(column.asText()));
        env.executeSql("CREATE TEMPORARY TABLE " + name + " (" + String.join(", ", columns) + ") WITH ("
                + "'connector' = 'filesystem', 'format' = 'json', 'path' = '" + file + "')");
    }

    ArrayNode answers() {
        List<Integer> planned = new ArrayList<>();
        for (int one = 0; one < answers.length; one++) {
            answers[one] = JSON.createObjectNode();
            try {
                Table table = env.sqlQuery(select(List.of(one), "source"));
                table.explain();
                String type = table.getResolvedSchema().getColumnDataTypes().get(0).getLogicalType().asSerializableString();
                answers[one].put("type", type);
                answers[one].putArray("makes");
                planned.add(one);
            } catch (Throwable error) {
                Throwable root = root(error);
                answers[one].put("makes", "refused").put("because", root.getMessage());
            }
        }
        run(planned);
        ArrayNode all = JSON.createArrayNode();
        for (ObjectNode answer : answers) {
            all.add(answer);
        }
        return all;
    }

    String select(List<Integer> some, String table) {
        List<String> expressions = new ArrayList<>();
        some.forEach(one -> expressions.add(group.get("cases").get(one).get("sql").asText()));
        return "SELECT " + String.join(", ", expressions) + " FROM " + table;
    }

    /** Runs expressions over all rows in one job; where that fails, in two; and row by row for one alone. */
    void run(List<Integer> some) {
        if (some.isEmpty() || collect(some, "source", rows) == null) {
            return;
        }
        if (some.size() > 1) {
            run(some.subList(0, some.size() / 2));
            run(some.subList(some.size() / 2, some.size()));
            return;
        }
        for (int row = 0; row < rows; row++) {
            Throwable error = collect(some, "row" + row, 1);
            if (error != null) {
                makes(some.get(0)).addObject().put("error", String.valueOf(root(error).getMessage()));
            }
        }
    }

    ArrayNode makes(int one) {
        return (ArrayNode) answers[one].get("makes");
    }

    Throwable collect(List<Integer> some, String from, int expected) {
        List<Row> found = new ArrayList<>();
        try (CloseableIterator<Row> rows = env.sqlQuery(select(some, from)).execute().collect()) {
            rows.forEachRemaining(found::add);
        } catch (Throwable error) {
            return error;
        }
        if (found.size() != expected) {
            return new IllegalStateException(found.size() + " rows of " + expected);
        }
        for (Row row : found) {
            for (int place = 0; place < some.size(); place++) {
                makes(some.get(place)).add(show(row.getField(place)));
            }
        }
        return null;
    }

    static Throwable root(Throwable error) {
        return error.getCause() == null ? error : root(error.getCause());
    }

    static JsonNode show(Object value) {
        if (value == null) {
            return JSON.nullNode();
        } else if (value instanceof Row) {
            ArrayNode all = JSON.createArrayNode();
            for (int field = 0; field < ((Row) value).getArity(); field++) {
                all.add(show(((Row) value).getField(field)));
            }
            return all;
        } else if (value instanceof Object[]) {
            ArrayNode all = JSON.createArrayNode();
            for (Object item : (Object[]) value) {
                all.add(show(item));
            }
            return all;
        } else if (value instanceof Map) {
            ObjectNode all = JSON.createObjectNode();
            Map<String, Object> sorted = new TreeMap<>();
            ((Map<?, ?>) value).forEach((key, item) -> sorted.put(String.valueOf(key), item));
            sorted.forEach((key, item) -> all.set(key, show(item)));
            return all;
        } else if (value instanceof BigDecimal) {
            return text(plain((BigDecimal) value));
        } else if (value instanceof Float || value instanceof Double) {
            return text(value.toString());
        } else if (value instanceof LocalTime) {
            return text(DateTimeFormatter.ISO_LOCAL_TIME.format((LocalTime) value));
        } else if (value instanceof LocalDateTime) {
            return text(((LocalDateTime) value).format(TIMESTAMP));
        } else if (value instanceof Instant) {
            return text(LocalDateTime.ofInstant((Instant) value, ZoneOffset.UTC).format(TIMESTAMP) + "Z");
        } else if (value instanceof Number || value instanceof Boolean || value instanceof byte[]) {
            return JSON.valueToTree(value);
        }
        return text(value.toString());
    }

    static JsonNode text(String text) {
        return JSON.getNodeFactory().textNode(text);
    }

    static final DateTimeFormatter TIMESTAMP = new DateTimeFormatterBuilder()
            .appendPattern("uuuu-MM-dd HH:mm:ss")
            .appendFraction(ChronoField.NANO_OF_SECOND, 0, 9, true)
            .toFormatter();

    static String plain(BigDecimal value) {
        return (value.signum() == 0 ? BigDecimal.ZERO : value.stripTrailingZeros()).toPlainString();
    }
}
