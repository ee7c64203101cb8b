import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.serialization.BulkWriter;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.file.table.factories.BulkWriterFormatFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.internal.TableEnvironmentInternal;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.EncodingFormat;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkFunctionProvider;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceFunctionProvider;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.operations.ModifyOperation;
import org.apache.flink.table.operations.Operation;
import org.apache.flink.table.operations.StatementSetOperation;
import org.apache.flink.table.operations.command.ResetOperation;
import org.apache.flink.table.operations.command.SetOperation;
import org.apache.flink.table.types.DataType;

/**
 * Reads scripts from standard input, one JSON object a line ({"name": ..., "script": ...}), and answers what Flink's own
 * parser and planner make of each: {"name": ..., "plans": [EXPLAIN of each INSERT]} or {"name": ..., "error": ...}.
 *
 * <p>The connectors that Flink does not come with are stubs of the same name, which take any option and have any
 * metadata column that is asked of them; everything else is Flink's own.
 */
public class FlinkPlans {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    static ObjectNode answer(JsonNode one) {
        ObjectNode answer = JSON.createObjectNode().put("name", one.get("name").asText());
        TableEnvironment environment = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        String current = "";
        try {
            ArrayNode plans = JSON.createArrayNode();
            for (String statement : statements(one.get("script").asText())) {
                current = statement;
                plan((TableEnvironmentInternal) environment, statement, plans);
            }
            answer.set("plans", plans);
        } catch (Throwable error) {
            StringBuilder why = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                why.append(why.length() == 0 ? "" : ": ").append(cause.getMessage());
            }
            answer.put("error", why + "\n in: " + current.strip());
        }
        return answer;
    }

    static void plan(TableEnvironmentInternal environment, String statement, ArrayNode plans) {
        // A statement set is parsed whole; the client's BEGIN STATEMENT SET is several statements.
        if (statement.strip().matches("(?i)BEGIN\\s+STATEMENT\\s+SET|END")) {
            return;
        }
        Operation operation = environment.getParser().parse(statement).get(0);
        if (operation instanceof SetOperation) {
            SetOperation set = (SetOperation) operation;
            environment.getConfig().set(set.getKey().get(), set.getValue().get());
        } else if (operation instanceof StatementSetOperation) {
            for (ModifyOperation one : ((StatementSetOperation) operation).getOperations()) {
                plans.add(environment.explainInternal(List.of((Operation) one)));
            }
        } else if (operation instanceof ModifyOperation) {
            plans.add(environment.explainInternal(List.of(operation)));
        } else if (!(operation instanceof ResetOperation)) {
            environment.executeInternal(operation);
        }
    }

    /** Cuts a script at its semicolons. Those of a statement set belong to it. */
    static List<String> statements(String script) {
        List<String> found = new ArrayList<>();
        StringBuilder one = new StringBuilder();
        for (int at = 0; at < script.length(); at++) {
            char c = script.charAt(at);
            int end = at + 1;
            if (script.startsWith("--", at)) {
                end = until(script, "\n", at);
            } else if (script.startsWith("/*", at)) {
                end = until(script, "*/", at);
            } else if (c == '\'' || c == '`') {
                end = until(script, String.valueOf(c), at + 1);
            } else if (c == ';' && !inStatementSet(one)) {
                found.add(one.toString());
                one.setLength(0);
                continue;
            }
            boolean comment = script.startsWith("--", at) || script.startsWith("/*", at);
            one.append(comment ? " " : script.substring(at, end));
            at = end - 1;
        }
        found.add(one.toString());
        found.removeIf(String::isBlank);
        return found;
    }

    static boolean inStatementSet(CharSequence statement) {
        String text = statement.toString().strip();
        return text.matches("(?is)EXECUTE\\s+STATEMENT\\s+SET\\b.*") && !text.matches("(?is).*\\bEND");
    }

    static int until(String script, String what, int from) {
        int at = script.indexOf(what, from);
        return at < 0 ? script.length() : at + what.length();
    }

    /** A connector that is there by name only. */
    abstract static class Stub implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Set.of();
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of();
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            return new StubSource(metadata(context));
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            return new StubSink(metadata(context));
        }

        static Map<String, DataType> metadata(Context context) {
            Map<String, DataType> keys = new LinkedHashMap<>();
            for (Column column : context.getCatalogTable().getResolvedSchema().getColumns()) {
                if (column instanceof Column.MetadataColumn) {
                    Column.MetadataColumn metadata = (Column.MetadataColumn) column;
                    keys.put(metadata.getMetadataKey().orElse(column.getName()), column.getDataType());
                }
            }
            return keys;
        }
    }

    /** A format of files that is there by name only. */
    abstract static class StubFormat implements BulkWriterFormatFactory {
        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Set.of();
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of();
        }

        @Override
        public EncodingFormat<BulkWriter.Factory<RowData>> createEncodingFormat(
                DynamicTableFactory.Context context, ReadableConfig options) {
            return new EncodingFormat<>() {
                @Override
                public BulkWriter.Factory<RowData> createRuntimeEncoder(DynamicTableSink.Context sink, DataType type) {
                    return out -> {
                        throw new UnsupportedOperationException("it is only planned");
                    };
                }

                @Override
                public ChangelogMode getChangelogMode() {
                    return ChangelogMode.insertOnly();
                }
            };
        }
    }

    public static class Avro extends StubFormat {
        @Override
        public String factoryIdentifier() {
            return "avro";
        }
    }

    public static class Parquet extends StubFormat {
        @Override
        public String factoryIdentifier() {
            return "parquet";
        }
    }

    public static class Mns extends Stub {
        @Override
        public String factoryIdentifier() {
            return "mns";
        }
    }

    public static class Cmq extends Stub {
        @Override
        public String factoryIdentifier() {
            return "cmq";
        }
    }

    public static class Mq extends Stub {
        @Override
        public String factoryIdentifier() {
            return "mq";
        }
    }

    public static class RocketMq4 extends Stub {
        @Override
        public String factoryIdentifier() {
            return "rocketmq4";
        }
    }

    public static class RocketMq5 extends Stub {
        @Override
        public String factoryIdentifier() {
            return "rocketmq5";
        }
    }

    /** Never run: a plan is all that is asked for. */
    static class Nothing implements SourceFunction<RowData> {
        @Override
        public void run(SourceContext<RowData> context) {}

        @Override
        public void cancel() {}
    }

    static class StubSource implements ScanTableSource, SupportsReadingMetadata {
        final Map<String, DataType> metadata;

        StubSource(Map<String, DataType> metadata) {
            this.metadata = metadata;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return SourceFunctionProvider.of(new Nothing(), false);
        }

        @Override
        public Map<String, DataType> listReadableMetadata() {
            return metadata;
        }

        @Override
        public void applyReadableMetadata(List<String> keys, DataType type) {}

        @Override
        public DynamicTableSource copy() {
            return new StubSource(metadata);
        }

        @Override
        public String asSummaryString() {
            return "stub";
        }
    }

    static class StubSink implements DynamicTableSink, SupportsWritingMetadata {
        final Map<String, DataType> metadata;

        StubSink(Map<String, DataType> metadata) {
            this.metadata = metadata;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.insertOnly();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkFunctionProvider.of(new DiscardingSink<>());
        }

        @Override
        public Map<String, DataType> listWritableMetadata() {
            return metadata;
        }

        @Override
        public void applyWritableMetadata(List<String> keys, DataType type) {}

        @Override
        public DynamicTableSink copy() {
            return new StubSink(metadata);
        }

        @Override
        public String asSummaryString() {
            return "stub";
        }
    }
}
