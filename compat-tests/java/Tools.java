import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs command-line tools one after the other in one JVM, since starting one costs more than most of them do.
 * Each line of standard input is a JSON array, the class and its arguments; each line of standard output is an
 * object with the exit status and what the tool printed.
 */
public class Tools {
    /** Ended is thrown where a tool would end the JVM. */
    private static class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /** The exit status of the tool that runs; null until it ends the JVM. */
    private static Integer status;

    /** Some tools catch everything, and so their own end too: only the first one counts, and what they print then does not. */
    private static void end(int code, String message) {
        if (status == null) {
            status = code;
            if (message != null) {
                System.err.println(message);
            }
            System.setOut(new PrintStream(OutputStream.nullOutputStream()));
            System.setErr(System.out);
        }
        throw new Ended();
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = System.out;
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] command = json.readValue(line, String[].class);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(capture);
            System.setErr(capture);
            status = null;
            run(command[0], Arrays.copyOfRange(command, 1, command.length));
            answers.println(json.writeValueAsString(Map.of("status", status, "output", printed.toString(StandardCharsets.UTF_8))));
            answers.flush();
        }
    }

    private static void run(String tool, String[] args) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Ended)) {
                e.getCause().printStackTrace();
                status = 1;
            }
        }
        if (status == null) {
            status = 0;
        }
    }
}
