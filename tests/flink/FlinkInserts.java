import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.ValidationException;

/**
 * Reads lines of two types with a tab between them, and says of each whether a column of the first can be inserted into
 * one of the second without a cast.
 */
public class FlinkInserts {
    public static void main(String[] arguments) throws Exception {
        TableEnvironment env = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] types = line.split("\t");
            env.executeSql("CREATE TEMPORARY TABLE f (x " + types[0] + ") WITH ('connector' = 'datagen')");
            env.executeSql("CREATE TEMPORARY TABLE t (y " + types[1] + ") WITH ('connector' = 'blackhole')");
            String told = "yes";
            try {
                env.explainSql("INSERT INTO t SELECT x FROM f");
            } catch (ValidationException refused) {
                told = "no";
            }
            System.out.println(line + "\t" + told);
            env.executeSql("DROP TEMPORARY TABLE f");
            env.executeSql("DROP TEMPORARY TABLE t");
        }
    }
}
